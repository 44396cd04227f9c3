// Replaces the pieces of the page that have changed, and leaves alone what the user is doing in them.

export const touched = new WeakSet(); // <details> that the user opened or closed

export function apply({ order, pieces }) {
  const focus = document.activeElement;
  const made = new Map(Object.entries(pieces).map(([key, html]) => [key, element(html)]));
  for (const [container, keys] of Object.entries(order)) arrange(container, keys, made);
  for (const [key, now] of made) {
    const old = find(key);
    if (old) morph(old, now);
  }
  if (focus?.isConnected && focus !== document.activeElement) focus.focus({ preventScroll: true }); // its row was moved
}

function element(html) {
  const template = document.createElement("template");
  template.innerHTML = html; // the server escapes every text in it, and no script of it could run
  return template.content.firstElementChild;
}

const find = (key) => document.querySelector(`[data-piece="${CSS.escape(key)}"]`);

function arrange(container, keys, made) {
  const place = document.getElementById(container);
  if (!place) return;
  const there = new Map([...place.children].map((child) => [child.dataset.piece, child]));
  let before = null;
  for (const key of keys) {
    let child = there.get(key);
    there.delete(key);
    if (!child) {
      child = made.get(key);
      made.delete(key);
    }
    if (!child) continue;
    const next = before ? before.nextSibling : place.firstChild;
    if (next !== child) place.insertBefore(child, next);
    before = child;
  }
  for (const child of there.values()) child.remove();
}

function morph(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) return old.replaceWith(now);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  copyAttributes(old, now);
  if (old.matches("[data-keep], [data-began], [data-until]")) return;
  const [was, is] = [[...old.childNodes], [...now.childNodes]];
  is.forEach((child, at) => (was[at] ? morph(was[at], child) : old.append(child)));
  was.slice(is.length).forEach((child) => child.remove());
}

function copyAttributes(old, now) {
  const own = (name) => name === "data-loaded" || name === "aria-busy" || (name === "open" && touched.has(old));
  const isNew = old.dataset.src !== now.dataset.src;
  for (const { name } of [...old.attributes]) {
    if (!now.hasAttribute(name) && (!own(name) || isNew)) old.removeAttribute(name);
  }
  for (const { name, value } of now.attributes) {
    if (!own(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}
