// The page in a browser: applies what the server sends, counts clocks on, loads files when they are opened, and acts.

import { apply, touched } from "./pieces.js";

const { up, seen, page } = document.body.dataset;
const state = { seen: Number(seen), call: "", count: 0, source: null, failed: 0 };
const byId = (id) => document.getElementById(id);

// Events

function connect() {
  if (state.source || document.hidden) return;
  const query = new URLSearchParams({ seen: state.seen, call: state.call, count: state.count });
  const source = new EventSource(`events?${query}`);
  state.source = source;
  source.onopen = () => {
    state.failed = 0;
    showConnection("on", "live");
  };
  source.onerror = () => {
    source.close(); // it would ask again for what it asked for first
    state.source = null;
    state.failed += 1;
    if (state.failed < 3) showConnection("", "reconnecting");
    else showConnection("off", "disconnected: rooda page has ended");
    setTimeout(connect, state.failed < 3 ? 1000 : 10000);
  };
  source.addEventListener("pieces", (event) => {
    state.seen = Number(event.lastEventId);
    apply(JSON.parse(event.data));
    afterChange();
  });
  source.addEventListener("words", (event) => showWords(JSON.parse(event.data)));
}

function showConnection(kind, text) {
  const place = byId("connection");
  place.className = `connection ${kind}`;
  if (place.textContent !== text) place.textContent = text;
}

// A page that nobody sees does not listen: browsers allow few open streams, and the server can sleep.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return connect();
  state.source?.close();
  state.source = null;
});

const KEPT = 100000; // characters

function showWords({ call, count, text, whole }) {
  const place = byId("words");
  const atEnd = place.scrollHeight - place.scrollTop - place.clientHeight < 40;
  state.call = call;
  state.count = count;
  place.textContent = whole ? text : (place.textContent + text).slice(-KEPT);
  byId("live").hidden = !place.textContent;
  if (atEnd || whole) place.scrollTop = place.scrollHeight;
}

// Clocks

function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (hours) return `${hours}h${minutes}m${rest}s`;
  return minutes ? `${minutes}m${rest}s` : `${rest}s`;
}

function tick() {
  const now = Date.now() / 1000;
  for (const place of document.querySelectorAll("[data-began]")) {
    place.textContent = duration(now - Number(place.dataset.began));
  }
  for (const place of document.querySelectorAll("[data-until]")) {
    place.textContent = `${duration(Number(place.dataset.until) - now)} left`;
  }
}

function afterChange() {
  tick();
  const asks = Number(document.querySelector("[data-asks]")?.dataset.asks ?? 0);
  const name = document.title.replace(/^\(\d+\) /, "");
  document.title = asks ? `(${asks}) ${name}` : name;
  drawChart();
}

async function drawChart() {
  const place = document.querySelector("[data-points]");
  if (place) (await import("./chart.js")).draw(place);
}

// Files of a run

document.addEventListener("toggle", (event) => {
  const details = event.target;
  if (details.dataset?.src && details.open && !details.dataset.loaded) load(details);
}, true);

document.addEventListener("click", (event) => {
  const summary = event.target.closest("summary");
  if (summary) touched.add(summary.parentElement);
}, true);

async function load(details) {
  const place = details.querySelector("pre");
  place.textContent = "…";
  try {
    const answer = await fetch(details.dataset.src);
    const text = await answer.text();
    if (details.dataset.what === "diff" && answer.ok) showDiff(place, text);
    else place.textContent = text;
    details.addEventListener("toggle", () => details.open && load(details), { once: true });
    details.dataset.loaded = "yes";
  } catch {
    place.textContent = "The page can't be reached.";
  }
}

const DIFF = [[/^(diff |index |--- |\+\+\+ |new file|deleted file|similarity|rename)/, "file"], [/^@@/, "place"], [/^\+/, "added"], [/^-/, "removed"]];

function showDiff(place, text) {
  place.textContent = "";
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const kind = DIFF.find(([form]) => form.test(line))?.[1];
    const row = document.createElement("span");
    row.textContent = kind ? line : `${line}\n`;
    if (kind) row.className = kind;
    place.append(row);
  }
}

// Actions

const dialog = byId("dialog");
const form = dialog.querySelector("form");
let current = null;

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (button && button.getAttribute("aria-busy") !== "true") begin(button);
});

function begin(button) {
  const { do: name, ask, hint, question, task, go } = button.dataset;
  if (!ask) return act(button, { do: name, id: button.dataset.id });
  current = button;
  form.reset();
  byId("asks").textContent = button.getAttribute("aria-label");
  byId("about").textContent = question ? `${question}\n\n${hint}` : hint;
  byId("said").hidden = true;
  byId("go").textContent = go ?? button.textContent;
  byId("go").hidden = false;
  byId("cancel").textContent = "Cancel";
  const parts = { text: ask === "text", limits: ask === "limits", land: name === "land" };
  for (const part of form.querySelectorAll("[data-part]")) part.hidden = !parts[part.dataset.part];
  form.querySelector('[data-limit="tokens"]').hidden = task !== undefined;
  form.text.required = ask === "text";
  dialog.showModal();
  (ask === "limits" ? form.iterations : ask === "text" ? form.text : byId("go")).focus();
}

byId("cancel").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => current?.isConnected && current.focus());

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const typed = Object.fromEntries(new FormData(form));
  const { do: name, id } = current.dataset;
  const [good, said] = await send(byId("go"), { ...typed, do: name, id });
  if (good && name !== "land") {
    dialog.close();
    return notice(said);
  }
  byId("said").textContent = said;
  byId("said").hidden = false;
  byId("go").hidden = good;
  byId("cancel").textContent = "Close";
});

document.addEventListener("submit", async (event) => {
  const own = event.target.closest("form[data-do]");
  if (!own) return;
  event.preventDefault();
  const { do: name, id } = own.dataset;
  const [good, said] = await send(own.querySelector("button"), { do: name, id, text: own.text.value });
  if (good) own.text.value = "";
  notice(said);
});

async function act(button, what) {
  const [, said] = await send(button, what);
  notice(said);
}

async function send(button, what) {
  button.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`${up}do`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(what),
    });
    const said = answer.headers.get("content-type") === "application/json" ? (await answer.json()).said : "It was refused.";
    return [answer.ok, said];
  } catch {
    return [false, "The page can't be reached: rooda page has ended."];
  } finally {
    button.removeAttribute("aria-busy");
  }
}

let fading = 0;

function notice(text) {
  let place = byId("notice");
  if (!place) {
    place = document.createElement("div");
    place.id = "notice";
    place.setAttribute("role", "status");
    document.body.append(place);
  }
  place.textContent = text;
  place.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => (place.hidden = true), 4000 + 40 * text.length);
}

if (location.search) history.replaceState(null, "", location.pathname);
setInterval(tick, 1000);
afterChange();
connect();
