// A small force layout: springs along the links, repulsion by a Barnes-Hut quadtree, gravity to the middle.
// It starts from a spiral in the order of the nodes, uses no random numbers, and so always ends in the same picture.

const GOLDEN = Math.PI * (3 - Math.sqrt(5));
const SPREAD = 14; // of the spiral at the start
const LINK = 54; // the length of a relaxed link
const CHARGE = -130;
const REACH = 700; // beyond it two nodes ignore each other
const GRAVITY = 0.028;
const THETA2 = 0.8; // of the quadtree: the square of size by distance below which a cell counts as one node
const FRICTION = 0.62;
const TICKS = 260; // until it is settled
const ALPHA_END = 0.002;
const DECAY = 1 - ALPHA_END ** (1 / TICKS);

// `links` are pairs of indexes below `count`.
export function forceLayout(count, links) {
  const x = new Float64Array(count);
  const y = new Float64Array(count);
  const vx = new Float64Array(count);
  const vy = new Float64Array(count);
  const degree = new Float64Array(count);
  for (const [from, to] of links) {
    degree[from]++;
    degree[to]++;
  }
  for (let i = 0; i < count; i++) {
    const radius = SPREAD * Math.sqrt(i + 0.5);
    x[i] = radius * Math.cos(i * GOLDEN);
    y[i] = radius * Math.sin(i * GOLDEN);
  }
  const tree = quadtree(count);
  let alpha = 1;

  function tick() {
    alpha -= alpha * DECAY;
    for (let k = 0; k < links.length; k++) {
      const [from, to] = links[k];
      const dx = x[to] + vx[to] - x[from] - vx[from] || 1e-6;
      const dy = y[to] + vy[to] - y[from] - vy[from] || 1e-6;
      const length = Math.sqrt(dx * dx + dy * dy);
      const least = Math.min(degree[from], degree[to]);
      const pull = ((length - LINK) / length) * (alpha / least);
      const share = degree[from] / (degree[from] + degree[to]);
      vx[to] -= dx * pull * share;
      vy[to] -= dy * pull * share;
      vx[from] += dx * pull * (1 - share);
      vy[from] += dy * pull * (1 - share);
    }
    tree.build(x, y);
    for (let i = 0; i < count; i++) tree.push(i, x, y, vx, vy, alpha);
    for (let i = 0; i < count; i++) {
      vx[i] = (vx[i] - x[i] * GRAVITY * alpha) * FRICTION;
      vy[i] = (vy[i] - y[i] * GRAVITY * alpha) * FRICTION;
      x[i] += vx[i];
      y[i] += vy[i];
    }
  }

  return {
    x,
    y,
    get settled() {
      return alpha <= ALPHA_END || count < 2;
    },
    // Goes on for about so many milliseconds. Returns whether there is more to do.
    step(ms) {
      const end = performance.now() + ms;
      while (!this.settled) {
        tick();
        if (performance.now() >= end) break;
      }
      return !this.settled;
    },
  };
}

// Cells in flat arrays: four children each, the mass and its middle, and the node of a leaf.
function quadtree(count) {
  const cells = Math.max(64, count * 8);
  const child = new Int32Array(cells * 4);
  const mass = new Float64Array(cells);
  const cx = new Float64Array(cells);
  const cy = new Float64Array(cells);
  const node = new Int32Array(cells);
  const width = new Float64Array(cells);
  const stack = new Int32Array(256);
  let used = 0;

  function cell(size) {
    const at = used++;
    child.fill(-1, at * 4, at * 4 + 4);
    mass[at] = cx[at] = cy[at] = 0;
    node[at] = -1;
    width[at] = size;
    return at;
  }

  function insert(i, px, py, left, top) {
    let at = 0;
    let [x0, y0, size] = [left, top, width[0]];
    for (let depth = 0; ; depth++) {
      const full = mass[at] > 0;
      const moved = full && node[at] >= 0 ? node[at] : -1;
      const [mx, my] = [cx[at] / (mass[at] || 1), cy[at] / (mass[at] || 1)];
      cx[at] += px;
      cy[at] += py;
      mass[at]++;
      if (!full) {
        node[at] = i;
        return;
      }
      if (depth > 40 || used > cells - 4) return; // at the same place: they count as one
      const half = size / 2;
      if (moved >= 0) {
        node[at] = -1;
        const quadrant = (mx >= x0 + half ? 1 : 0) + (my >= y0 + half ? 2 : 0);
        const below = cell(half);
        child[at * 4 + quadrant] = below;
        node[below] = moved;
        mass[below] = 1;
        cx[below] = mx;
        cy[below] = my;
      }
      const quadrant = (px >= x0 + half ? 1 : 0) + (py >= y0 + half ? 2 : 0);
      if (child[at * 4 + quadrant] < 0) child[at * 4 + quadrant] = cell(half);
      if (quadrant & 1) x0 += half;
      if (quadrant & 2) y0 += half;
      size = half;
      at = child[at * 4 + quadrant];
    }
  }

  return {
    build(x, y) {
      let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
      for (let i = 0; i < count; i++) {
        left = Math.min(left, x[i]);
        right = Math.max(right, x[i]);
        top = Math.min(top, y[i]);
        bottom = Math.max(bottom, y[i]);
      }
      used = 0;
      cell(Math.max(right - left, bottom - top, 1) * 1.0001);
      for (let i = 0; i < count; i++) insert(i, x[i], y[i], left, top);
      for (let at = 0; at < used; at++) {
        cx[at] /= mass[at] || 1;
        cy[at] /= mass[at] || 1;
      }
    },
    push(i, x, y, vx, vy, alpha) {
      let depth = 0;
      stack[depth++] = 0;
      while (depth) {
        const at = stack[--depth];
        let dx = cx[at] - x[i];
        let dy = cy[at] - y[i];
        let distance2 = dx * dx + dy * dy;
        const leaf = node[at] >= 0;
        if (leaf && node[at] === i) continue;
        if (leaf || width[at] * width[at] < THETA2 * distance2) {
          if (distance2 > REACH * REACH) continue;
          if (distance2 < 1) {
            dx ||= (i % 7) * 0.1 - 0.3; // two nodes at one place part in a direction of their own
            dy ||= (i % 5) * 0.1 - 0.2;
            distance2 = 1;
          }
          const force = (CHARGE * alpha * mass[at]) / distance2;
          vx[i] += dx * force;
          vy[i] += dy * force;
        } else {
          for (let q = 0; q < 4; q++) if (child[at * 4 + q] >= 0) stack[depth++] = child[at * 4 + q];
        }
      }
    },
  };
}
