// The picture of a graph: laid out by forces, drawn on a canvas, moved and zoomed by pointer, wheel and keys.

import { html, useEffect, useRef } from "../vendor/htm-preact.js";
import { forceLayout } from "./force.js";
import { isCurrent } from "./graph-data.js";

const ZOOM = [0.08, 6];
const STEP_MS = 9; // of layout in a frame
const STILL = "(prefers-reduced-motion: reduce)";
const CLICK = 5; // pixels that a pointer may move in a click
const LABELS = 160; // that are drawn at most
const EDGE = 48; // pixels around the picture when all of it is shown

// `nodes` and `links` as `partOf` gives them. `near` are nodes that stand out with the selected one.
export function GraphCanvas({ nodes, links, at, selected, near, onSelect, label }) {
  const canvas = useRef(null);
  const picture = useRef(null);

  useEffect(() => {
    picture.current = makePicture(canvas.current, (node) => picture.current.onSelect?.(node));
    return () => picture.current.end();
  }, []);
  useEffect(() => picture.current.show(nodes, links), [nodes, links]);
  useEffect(() => {
    picture.current.onSelect = onSelect;
    picture.current.mark({ at, selected, near });
  });

  return html`
    <div class="graph-picture">
      <canvas
        ref=${canvas}
        role="img"
        tabindex="0"
        aria-label=${label}
        onKeyDown=${(event) => picture.current.key(event)}
      ></canvas>
      <div class="graph-zoom" role="group" aria-label="Zoom">
        <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick=${() => picture.current.zoom(1.4)}>+</button>
        <button type="button" aria-label="Zoom out" title="Zoom out (−)" onClick=${() => picture.current.zoom(1 / 1.4)}>
          −
        </button>
        <button type="button" aria-label="Show all" title="Show all (0)" onClick=${() => picture.current.fit()}>⤢</button>
      </div>
    </div>
  `;
}

function makePicture(canvas, select) {
  const context = canvas.getContext("2d");
  const view = { x: 0, y: 0, k: 1, width: 0, height: 0 };
  let nodes = [];
  let links = []; // {from, to, facts}, with the indexes of the nodes
  let index = new Map();
  let layout = forceLayout(0, []);
  let marks = { at: Date.now(), selected: null, near: new Set() };
  let hovered = -1;
  let fitted = true; // until somebody moves the picture
  let frame = 0;
  let colours = readColours(canvas);

  // ---- what is shown

  function show(newNodes, newLinks) {
    const before = new Map(nodes.map((each, i) => [each.name, [layout.x[i], layout.y[i]]]));
    nodes = newNodes;
    index = new Map(nodes.map((each, i) => [each, i]));
    links = newLinks.map((each) => ({ ...each, a: index.get(each.from), b: index.get(each.to) }));
    layout = forceLayout(
      nodes.length,
      links.map(({ a, b }) => [a, b]),
    );
    const known = nodes.filter((each) => before.has(each.name)).length;
    if (known > nodes.length / 2) {
      nodes.forEach((each, i) => {
        if (before.has(each.name)) [layout.x[i], layout.y[i]] = before.get(each.name);
      });
    } else {
      fitted = true;
    }
    hovered = -1;
    draw();
  }

  function mark(next) {
    const moved = next.selected && next.selected !== marks.selected;
    marks = next;
    if (moved && layout.settled) bringIntoView(index.get(next.selected));
    draw();
  }

  // ---- frames

  function draw() {
    frame ||= requestAnimationFrame(paint);
  }

  function paint() {
    frame = 0;
    if (!layout.settled) {
      layout.step(window.matchMedia(STILL).matches ? 200 : STEP_MS);
      if (fitted) fitNow();
      draw();
    }
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, view.width, view.height);
    paintLinks();
    paintNodes();
    paintLabels();
  }

  const left = (i) => view.x + layout.x[i] * view.k;
  const top = (i) => view.y + layout.y[i] * view.k;
  const scale = () => Math.max(0.45, Math.min(1.6, view.k));
  const radius = (i) => (3.5 + Math.min(9, 1.5 * Math.sqrt(nodes[i].degree) + Math.log1p(nodes[i].count))) * scale();
  const stands = (i) => !marks.selected || nodes[i] === marks.selected || marks.near.has(nodes[i]);

  function current(link) {
    return link.facts.some((each) => isCurrent(each, marks.at));
  }

  function paintLinks() {
    const chosen = marks.selected ? index.get(marks.selected) : hovered;
    for (const strong of [false, true]) {
      context.beginPath();
      for (const each of links) {
        const { a, b } = each;
        if ((a === chosen || b === chosen) !== strong || !current(each)) continue;
        context.moveTo(left(a), top(a));
        context.lineTo(left(b), top(b));
      }
      context.globalAlpha = strong ? 0.9 : marks.selected ? 0.35 : 0.75;
      context.lineWidth = strong ? 1.6 : 1;
      context.strokeStyle = strong ? colours.accent : colours.link;
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  function paintNodes() {
    const lit = new Set();
    for (const each of links) if (current(each)) lit.add(each.a).add(each.b);
    nodes.forEach((node, i) => {
      const [x, y] = [left(i), top(i)];
      if (x < -20 || y < -20 || x > view.width + 20 || y > view.height + 20) return;
      context.globalAlpha = !lit.has(i) ? 0.18 : stands(i) ? 1 : 0.3;
      context.beginPath();
      context.arc(x, y, radius(i), 0, 2 * Math.PI);
      context.fillStyle = colours.type(node.type);
      context.fill();
      if (node === marks.selected || i === hovered) {
        context.globalAlpha = 1;
        context.lineWidth = 2.5;
        context.strokeStyle = node === marks.selected ? colours.accent : colours.text;
        context.beginPath();
        context.arc(x, y, radius(i) + 3, 0, 2 * Math.PI);
        context.stroke();
      }
    });
    context.globalAlpha = 1;
    paintNodes.lit = lit;
  }

  function paintLabels() {
    const taken = [];
    const size = Math.round(11 + Math.min(3, view.k));
    context.font = `${size}px ${colours.font}`;
    context.textAlign = "center";
    context.textBaseline = "top";
    context.lineJoin = "round";
    const chosen = marks.selected ? index.get(marks.selected) : -1;
    const near = nodes.map((_, i) => i).filter((i) => i !== chosen && i !== hovered && stands(i) && marks.selected);
    const order = [hovered, chosen, ...near, ...nodes.keys()].filter((i) => i !== undefined && i >= 0);
    const done = new Set();
    for (const i of order) {
      if (done.size >= LABELS) break;
      if (done.has(i)) continue;
      const always = i === chosen || i === hovered;
      if (!always && (!paintNodes.lit.has(i) || (marks.selected && !stands(i)))) continue;
      const text = shorten(nodes[i].name);
      const [x, y, half] = [left(i), top(i) + radius(i) + 3, context.measureText(text).width / 2 + 3];
      const box = [x - half, y - 1, x + half, y + size + 2];
      if (box[2] < 0 || box[0] > view.width || box[3] < 0 || box[1] > view.height) continue;
      if (!always && taken.some((each) => overlap(each, box))) continue;
      taken.push(box);
      done.add(i);
      context.lineWidth = 3;
      context.strokeStyle = colours.ground;
      context.strokeText(text, x, y);
      context.fillStyle = colours.text;
      context.fillText(text, x, y);
    }
  }

  // ---- where

  function fitNow() {
    if (!nodes.length || !view.width) return;
    const [x, y] = [span(layout.x), span(layout.y)];
    const wide = Math.max(1, x.most - x.least);
    const high = Math.max(1, y.most - y.least);
    const k = Math.min((view.width - 2 * EDGE) / wide, (view.height - 2 * EDGE) / high, 1.6);
    view.k = Math.max(ZOOM[0], k);
    view.x = view.width / 2 - ((x.least + x.most) / 2) * view.k;
    view.y = view.height / 2 - ((y.least + y.most) / 2) * view.k;
  }

  function fit() {
    fitted = true;
    fitNow();
    draw();
  }

  function zoom(by, x = view.width / 2, y = view.height / 2) {
    fitted = false;
    const k = Math.max(ZOOM[0], Math.min(ZOOM[1], view.k * by));
    view.x = x - ((x - view.x) / view.k) * k;
    view.y = y - ((y - view.y) / view.k) * k;
    view.k = k;
    draw();
  }

  function pan(x, y) {
    fitted = false;
    view.x += x;
    view.y += y;
    draw();
  }

  function bringIntoView(i) {
    if (i === undefined) return;
    const [x, y] = [left(i), top(i)];
    if (x > EDGE && y > EDGE && x < view.width - EDGE && y < view.height - EDGE) return;
    pan(view.width / 2 - x, view.height / 2 - y);
  }

  // The node at a place, or else the nearest one that a finger may mean.
  function nodeAt(x, y, reach) {
    let [best, least] = [-1, Infinity];
    for (let i = 0; i < nodes.length; i++) {
      const distance = Math.hypot(left(i) - x, top(i) - y) - radius(i);
      if (distance < reach && distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  // ---- pointers: one moves the picture or chooses a node, two zoom

  const pointers = new Map();
  let moved = 0;

  function place(event) {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  function down(event) {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    if (pointers.size === 1) moved = 0;
  }

  function move(event) {
    const here = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      const found = nodeAt(here.x, here.y, 4);
      if (found !== hovered) {
        hovered = found;
        canvas.classList.toggle("over", found >= 0);
        draw();
      }
      return;
    }
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    moved += Math.hypot(here.x - before.x, here.y - before.y);
    pointers.set(event.pointerId, here);
    if (other) {
      const apart = (one) => Math.hypot(one.x - other.x, one.y - other.y) || 1;
      zoom(apart(here) / apart(before), (here.x + other.x) / 2, (here.y + other.y) / 2);
    } else if (moved > CLICK) {
      pan(here.x - before.x, here.y - before.y);
    }
  }

  function up(event) {
    const here = pointers.get(event.pointerId);
    pointers.delete(event.pointerId);
    if (!here || moved > CLICK || event.type === "pointercancel") return;
    const found = nodeAt(here.x, here.y, event.pointerType === "touch" ? 16 : 4);
    select(found < 0 ? null : nodes[found]);
  }

  function wheel(event) {
    event.preventDefault();
    const { x, y } = place(event);
    const lines = event.deltaMode === 1 ? 16 : 1;
    zoom(Math.exp((-event.deltaY * lines * (event.ctrlKey ? 4 : 1)) / 500), x, y);
  }

  function leave() {
    if (hovered < 0) return;
    hovered = -1;
    draw();
  }

  const keys = {
    ArrowLeft: () => pan(40, 0),
    ArrowRight: () => pan(-40, 0),
    ArrowUp: () => pan(0, 40),
    ArrowDown: () => pan(0, -40),
    "+": () => zoom(1.25),
    "=": () => zoom(1.25),
    "-": () => zoom(0.8),
    0: fit,
    Escape: () => select(null),
  };

  function key(event) {
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // ---- size and colours

  function resize() {
    const ratio = window.devicePixelRatio || 1;
    [view.width, view.height] = [canvas.clientWidth, canvas.clientHeight];
    [canvas.width, canvas.height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
    if (fitted) fitNow();
    draw();
  }

  function recolour() {
    colours = readColours(canvas);
    draw();
  }

  const sizes = new ResizeObserver(resize);
  sizes.observe(canvas);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const themes = new MutationObserver(recolour);
  dark.addEventListener("change", recolour);
  themes.observe(document.documentElement, { attributes: true });
  const listeners = { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, pointerleave: leave, wheel };
  for (const [name, each] of Object.entries(listeners)) canvas.addEventListener(name, each, { passive: false });

  function end() {
    cancelAnimationFrame(frame);
    sizes.disconnect();
    themes.disconnect();
    dark.removeEventListener("change", recolour);
  }

  return { show, mark, zoom, fit, key, end, onSelect: null };
}

function span(values) {
  let [least, most] = [Infinity, -Infinity];
  for (const each of values) [least, most] = [Math.min(least, each), Math.max(most, each)];
  return { least, most };
}

function overlap(one, other) {
  return one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];
}

const NAME_CHARS = 28;

function shorten(name) {
  const characters = Array.from(name.replace(/[\u202a-\u202e\u2066-\u2069]/g, "")); // no text turns its neighbours round
  return characters.length > NAME_CHARS ? `${characters.slice(0, NAME_CHARS - 1).join("")}…` : characters.join("");
}

const TYPES = 6;

function readColours(canvas) {
  const style = getComputedStyle(canvas);
  const colour = (name) => style.getPropertyValue(name).trim();
  const ofType = Array.from({ length: TYPES }, (_, i) => colour(`--type-${i}`));
  return {
    accent: colour("--graph-accent"),
    link: colour("--graph-link"),
    ground: colour("--graph-ground"),
    text: colour("--graph-text"),
    font: style.fontFamily,
    type: (type) => (type ? ofType[1 + (hash(type) % (TYPES - 1))] : ofType[0]),
  };
}

function hash(text) {
  let sum = 0;
  for (const each of text) sum = (sum * 31 + each.codePointAt(0)) >>> 0;
  return sum;
}
