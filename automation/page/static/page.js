// Keep the page live: take the parts that changed from the stream, and say plainly when it is not live.
"use strict";

const QUIET_MS = 3000; // without a reading for so long, what is shown is old
const AGAIN_MS = [500, 1000, 2000, 4000];
const PRESSED_MS = 2000; // who presses for so long means no click
const CLICK_MS = 350; // a finger's click comes so long after it was lifted, at most

const live = document.getElementById("live");
const liveText = document.getElementById("live-text");
const said = document.getElementById("said");
const unread = document.getElementById("unread");
const unreadText = document.getElementById("unread-text");
const parts = document.getElementById("parts");

let source = null;
let failures = 0;
let heardAt = 0;
let readAt = "";
let reconnect = null;
let aheadMs = 0; // how far the queue's clock is ahead of this browser's
let held = []; // the changes to the page that wait for the end of a press
let pressTimer = null; // ends the press; null where nothing is pressed

function show(state, text) {
  if (live.dataset.state !== state) live.dataset.state = state;
  if (liveText.textContent !== text) liveText.textContent = text;
}

function old(isOld) {
  parts.toggleAttribute("data-old", isOld);
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
  if (pressTimer === null) how(); else held.push(how);
}

function press() {
  endPressAfter(PRESSED_MS);
}

function lift() {
  if (pressTimer !== null) endPressAfter(CLICK_MS);
}

function click(event) {
  // What a link leads to is on its way, and a page that is loaded anew meanwhile would end that.
  if (pressTimer !== null) endPressAfter(event.target.closest("a") ? PRESSED_MS : 0);
}

function endPressAfter(ms) {
  clearTimeout(pressTimer);
  pressTimer = setTimeout(endPress, ms);
}

function endPress() {
  pressTimer = null;
  const changes = held;
  held = [];
  for (const how of changes) how();
}

function hear(event, then) {
  const body = JSON.parse(event.data);
  failures = 0;
  heardAt = Date.now();
  if (body.build !== document.body.dataset.build) change(() => location.reload());
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
    old(true);
    show("not-live", "Not live: the queue cannot be read");
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
function watchOrRest() {
  if (document.visibilityState === "hidden") {
    closeStream();
  } else if (source === null) {
    heardAt = Date.now();
    openStream();
  }
}

setInterval(() => {
  if (document.visibilityState === "hidden" || pressTimer !== null) return;
  sayAges();
  if (Date.now() - heardAt > QUIET_MS && live.dataset.state !== "still") {
    old(true);
    show("not-live", `Not live${readAt ? ` since ${readAt}` : ""}: what is shown is old, it is tried again`);
  }
  // A request that was lost on its way is not waited for either: a browser would wait for minutes.
  if (Date.now() - heardAt > 3 * QUIET_MS && source !== null) {
    heardAt = Date.now() - QUIET_MS - 1;
    openStream();
  }
}, 500);

heardAt = Date.now();
live.dataset.state = "opening";
liveText.textContent = "Opening the stream ";
document.getElementById("again").hidden = true;
document.addEventListener("visibilitychange", watchOrRest);
document.addEventListener("pointerdown", press);
document.addEventListener("pointerup", lift);
document.addEventListener("pointercancel", lift);
document.addEventListener("click", click);
watchOrRest();
