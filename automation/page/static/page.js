// Keep the page live: take the parts that changed from the stream, and say plainly when it is not live.
"use strict";

const QUIET_MS = 3000; // without a reading for so long, what is shown is old
const AGAIN_MS = [500, 1000, 2000, 4000];
const PRESSED_MS = 2000; // who presses for so long means no click, and no change waits for longer
const CLICK_MS = 350; // a finger's click comes so long after it was lifted, at most; what a click begins comes sooner
const LEAVING_MS = 30000; // so long the answer may take to what the person asked for

const live = document.getElementById("live");
const liveText = document.getElementById("live-text");
const said = document.getElementById("said");
const unread = document.getElementById("unread");
const unreadText = document.getElementById("unread-text");
const parts = document.getElementById("parts");

let source = null;
let failures = 0;
let heardAt = 0; // by the clock, which may be put back
let heardMs = 0; // since the page was opened, by a time that may stand still while the machine sleeps
let readAt = "";
let reconnect = null;
let aheadMs = 0; // how far the queue's clock is ahead of this browser's
let held = []; // the changes to the page that wait for the end of a press
let heldSince = 0; // when the first of them came
let pressTimer = null; // ends the press; null where nothing is pressed
let leavingUntil = 0; // the person has asked for another page, which is on its way

function show(state, text) {
  if (live.dataset.state !== state) live.dataset.state = state;
  if (liveText.textContent !== text) liveText.textContent = text;
}

function old(isOld) {
  parts.toggleAttribute("data-old", isOld);
}

function entitle(state) {
  const title = `${state} · ${document.body.dataset.queue}`;
  if (document.title !== title) document.title = title;
}

function notLive(title, text) {
  old(true);
  entitle(title);
  show("not-live", text);
}

function hearNow() {
  heardAt = Date.now();
  heardMs = performance.now();
}

function silentMs() {
  return Math.max(Date.now() - heardAt, performance.now() - heardMs);
}

function saySilent() {
  if (silentMs() <= QUIET_MS) return;
  notLive("not live", `Not live${readAt ? ` since ${readAt}` : ""}: what is shown is old, it is tried again`);
}

// Of one kind and, where they have an id or a key, of the same.
function isSame(node, fresh) {
  return node.nodeName === fresh.nodeName && node.id === fresh.id && node.dataset?.key === fresh.dataset?.key;
}

// The longest common subsequence of two lists of nodes, as pairs of the same.
function pairs(nodes, wanted) {
  const common = Array.from({ length: nodes.length + 1 }, () => new Array(wanted.length + 1).fill(0));
  for (let i = nodes.length - 1; i >= 0; i -= 1) {
    for (let j = wanted.length - 1; j >= 0; j -= 1) {
      common[i][j] = isSame(nodes[i], wanted[j])
        ? common[i + 1][j + 1] + 1
        : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const found = new Map();
  for (let i = 0, j = 0; i < nodes.length && j < wanted.length;) {
    if (isSame(nodes[i], wanted[j])) found.set(wanted[j++], nodes[i++]);
    else if (common[i + 1][j] >= common[i][j + 1]) i += 1;
    else j += 1;
  }
  return found;
}

// Make a node what the fresh one is. What has not changed is left: it stays focused, selected, scrolled, opened.
function become(node, fresh) {
  if (node.isEqualNode(fresh)) return;
  if (node.nodeType !== Node.ELEMENT_NODE) { node.data = fresh.data; return; }
  for (const name of node.getAttributeNames()) {
    if (!fresh.hasAttribute(name) && name !== "open") node.removeAttribute(name);
  }
  for (const name of fresh.getAttributeNames()) node.setAttribute(name, fresh.getAttribute(name));
  fill(node, fresh);
}

function fill(place, fresh) {
  const wanted = [...fresh.childNodes];
  const nodes = [...place.childNodes];
  const kept = pairs(nodes, wanted);
  const stays = new Set(kept.values());
  for (const node of nodes) if (!stays.has(node)) node.remove();
  let next = place.firstChild;
  for (const one of wanted) {
    const node = kept.get(one);
    if (node === undefined) { place.insertBefore(one, next); continue; }
    next = node.nextSibling;
    become(node, one);
  }
}

function swap(name, html) {
  const place = document.querySelector(`[data-part="${name}"]`);
  if (place === null) return;
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const focused = document.activeElement;
  fill(place, fresh.content);
  // A button that was made anew elsewhere in its part has the focus of the old one.
  if (focused.id && !focused.isConnected) document.getElementById(focused.id)?.focus({ preventScroll: true });
}

function sayAges() {
  for (const time of document.querySelectorAll("time[data-ms]")) {
    const seconds = Math.max(0, Math.round((Date.now() + aheadMs - Number(time.dataset.ms)) / 1000));
    const text = seconds < 120 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`;
    time.dataset.ago = text;
  }
}

// A click is a press and a letting go at the same place, so the page does not change between the two.
function change(how) {
  if (pressTimer === null) { how(); return; }
  if (held.length === 0) heldSince = performance.now();
  held.push(how);
}

function endPressAfter(ms) {
  const leftMs = held.length === 0 ? ms : heldSince + PRESSED_MS - performance.now();
  clearTimeout(pressTimer);
  pressTimer = setTimeout(endPress, Math.max(0, Math.min(ms, leftMs)));
}

// Not every browser says that a page is being left.
function click(event) {
  endPressAfter(CLICK_MS);
  const isElsewhere = event.ctrlKey || event.metaKey || event.shiftKey;
  if (!isElsewhere && event.target.closest("a[href]:not([href^='#'])")) leave();
}

function endPress() {
  pressTimer = null;
  const changes = held;
  held = [];
  for (const how of changes) how();
}

// To load the page anew would end what the person has asked for.
function loadAnew() {
  if (performance.now() > leavingUntil) location.reload();
  else notLive("not live", "Not live: the service was replaced, and another page is being loaded");
}

function leave() {
  leavingUntil = performance.now() + LEAVING_MS;
}

function hear(event, then) {
  const body = JSON.parse(event.data);
  failures = 0;
  hearNow();
  if (body.build !== document.body.dataset.build) change(loadAnew);
  else change(() => then(body));
}

function onReading(event) {
  hear(event, (body) => {
    for (const [name, html] of Object.entries(body.parts)) swap(name, html);
    readAt = body.at;
    aheadMs = body.now_ms - Date.now();
    document.title = body.title;
    if (said.textContent !== body.said) said.textContent = body.said;
    unread.hidden = true;
    old(false);
    sayAges();
    show("live", "Live");
  });
}

function onUnread(event) {
  hear(event, (body) => {
    unreadText.textContent = `Since ${body.since}: ${body.failed}`;
    unread.hidden = false;
    notLive("unreadable", "Not live: the queue cannot be read");
  });
}

function closeStream() {
  if (source !== null) source.close();
  source = null;
  clearTimeout(reconnect);
}

function openStream() {
  closeStream();
  source = new EventSource("/live");
  source.addEventListener("reading", onReading);
  source.addEventListener("unread", onUnread);
  source.onerror = () => {
    closeStream();
    reconnect = setTimeout(openStream, AGAIN_MS[Math.min(failures, AGAIN_MS.length - 1)]);
    failures += 1;
  };
}

// A browser keeps few connections to one host open, so a page that nobody sees gives its own back.
function watchOrRest(event) {
  if (document.visibilityState === "hidden") {
    closeStream();
    held = [];
    entitle("at rest");
  } else if (source === null) {
    if (event) { // it has rested, or was opened where nobody saw it
      old(true);
      entitle("opening");
    }
    show("opening", "Opening the stream ");
    hearNow();
    openStream();
  }
}

setInterval(() => {
  if (document.visibilityState === "hidden") return;
  if (pressTimer === null) sayAges();
  const silent = silentMs();
  if (silent > QUIET_MS && !held.includes(saySilent)) change(saySilent);
  // A request that was lost on its way is not waited for either: a browser would wait for minutes.
  if (silent > 3 * QUIET_MS && source !== null) {
    hearNow();
    heardAt -= QUIET_MS + 1;
    openStream();
  }
}, 500);

document.getElementById("again").hidden = true;
document.addEventListener("visibilitychange", watchOrRest);
document.addEventListener("pointerdown", () => endPressAfter(PRESSED_MS));
document.addEventListener("pointerup", () => endPressAfter(CLICK_MS));
document.addEventListener("click", click); // one by a key has no press before it
document.addEventListener("pointercancel", () => endPressAfter(0)); // no click comes of it
document.addEventListener("submit", leave);
window.addEventListener("beforeunload", leave);
watchOrRest();
