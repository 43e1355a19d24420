// One stream of changes for the whole page: server-sent events over fetch, because EventSource sends no token.
// It comes back by itself after the server was away, and goes on where it stopped.

const BACK_OFF_MS = [500, 1_000, 2_000, 4_000, 8_000];
const SILENCE_MS = 60_000; // after which a connection counts as dead: the server sends heartbeats more often
const HIDDEN_MS = 20_000; // a page that nobody looks at gives its connection back; a browser has six for a server

export class Connection {
  // "connecting", "live", "away" (no answer from the server), "unauthorized" or "silent" (it answers, without changes)
  state = "connecting";

  #options;
  #states = new Set();
  #listeners = new Set();
  #last = null; // the number of the last change
  #abort = null;
  #failures = 0;
  #timer = 0;
  #hidden = 0;

  constructor(options) {
    this.#options = options;
    document.addEventListener("visibilitychange", () => this.#visibility());
    window.addEventListener("online", () => this.state === "away" && this.restart());
  }

  // Calls the listener with each new state. Returns what ends that.
  subscribe(listener) {
    this.#states.add(listener);
    return () => this.#states.delete(listener);
  }

  onChange(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // Connect anew, as after another token.
  restart() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#failures = 0;
    this.#run();
  }

  // A request got no answer.
  lost() {
    if (this.state === "live" || this.state === "silent") this.restart();
    else if (this.state !== "away") this.#set("away");
  }

  // A request got one.
  answered() {
    if (this.state === "away" && this.#abort === null) this.restart();
  }

  unauthorized() {
    this.#abort?.abort();
    clearTimeout(this.#timer);
    this.#set("unauthorized");
  }

  #set(state) {
    if (this.state === state) return;
    this.state = state;
    for (const each of [...this.#states]) each(state);
  }

  #visibility() {
    clearTimeout(this.#hidden);
    if (document.hidden) {
      this.#hidden = setTimeout(() => {
        clearTimeout(this.#timer);
        this.#abort?.abort();
        this.#abort = null;
      }, HIDDEN_MS);
    } else if (this.#abort === null && this.state !== "unauthorized") {
      this.restart();
    }
  }

  async #run() {
    const abort = new AbortController();
    this.#abort = abort;
    let silent = 0;
    const alive = () => {
      clearTimeout(silent);
      silent = setTimeout(() => abort.abort(new Error("silence")), SILENCE_MS);
    };
    try {
      alive();
      const answer = await fetch(this.#options.url(this.#last ?? undefined), {
        headers: this.#options.headers({
          Accept: "text/event-stream",
          ...(this.#last === null ? {} : { "Last-Event-ID": String(this.#last) }),
        }),
        signal: abort.signal,
        cache: "no-store",
      });
      if (answer.status === 401) return this.unauthorized();
      if (!answer.ok) {
        this.#set("silent");
        throw new Error(`status ${answer.status}`);
      }
      await this.#read(answer.body, alive);
      throw new Error("the stream ended");
    } catch {
      if (this.#abort !== abort) return; // another one has taken its place
      this.#abort = null;
      if (this.state !== "silent") this.#set("away");
      const wait = BACK_OFF_MS[Math.min(this.#failures++, BACK_OFF_MS.length - 1)];
      if (!document.hidden) this.#timer = setTimeout(() => this.#run(), wait);
    } finally {
      clearTimeout(silent);
    }
  }

  async #read(body, alive) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      const events = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
      rest = events.pop();
      const changes = events.map((each) => this.#event(each)).filter(Boolean);
      if (changes.length) for (const each of [...this.#listeners]) each(changes);
    }
  }

  // The change that an event tells of.
  #event(text) {
    let kind = "message";
    const data = [];
    for (const line of text.split("\n")) {
      const [name, said = ""] = line.split(/: ?(.*)/s);
      if (name === "event") kind = said;
      else if (name === "data") data.push(said);
      else if (name === "id" && said) this.#last = Number(said);
    }
    if (kind === "ready") {
      this.#last ??= JSON.parse(data.join("\n")).seq;
      this.#failures = 0;
      this.#set("live");
    }
    return kind === "change" ? JSON.parse(data.join("\n")) : null;
  }
}
