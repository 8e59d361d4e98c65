// Keep the page live: take the parts that changed from the stream, and say plainly when it is not live.
"use strict";

const QUIET_MS = 3000; // without a reading for so long, what is shown is old
const AGAIN_MS = [500, 1000, 2000, 4000];
const PRESSED_MS = 2000; // who presses for so long means no click
const OWN = new Set(["open", "data-ago"]); // attributes that no reading gives: they are this page's

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
let waiting = null; // what was read while a button was pressed: not to be shown yet
let pressed = null; // the timer that ends the press

function show(state, text) {
  if (live.dataset.state !== state) live.dataset.state = state;
  if (liveText.textContent !== text) liveText.textContent = text;
}

function old(isOld) {
  parts.toggleAttribute("data-old", isOld);
}

// Make a node what the fresh one is. What has not changed is left: it stays focused, selected, scrolled, opened.
function become(node, fresh) {
  if (node.isEqualNode(fresh)) return;
  if (node.nodeType !== Node.ELEMENT_NODE) { node.data = fresh.data; return; }
  for (const name of node.getAttributeNames()) {
    if (!fresh.hasAttribute(name) && !OWN.has(name)) node.removeAttribute(name);
  }
  for (const name of fresh.getAttributeNames()) node.setAttribute(name, fresh.getAttribute(name));
  fill(node, fresh);
}

function isSame(node, one) {
  return node !== null && node.nodeName === one.nodeName && node.id === one.id;
}

// What has an id is found again where others came or went before it; what has none is known by its place.
function fill(place, fresh) {
  let node = place.firstChild;
  for (const one of [...fresh.childNodes]) {
    let same = node;
    while (one.id && same !== null && !isSame(same, one)) same = same.nextSibling;
    if (!isSame(same, one)) { place.insertBefore(one, node); continue; }
    while (node !== same) node = after(node);
    become(node, one);
    node = node.nextSibling;
  }
  while (node !== null) node = after(node);
}

function after(removed) {
  const next = removed.nextSibling;
  removed.remove();
  return next;
}

function swap(name, html) {
  const place = document.querySelector(`[data-part="${name}"]`);
  if (place === null) return;
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const focused = document.activeElement;
  fill(place, fresh.content);
  // What stands in another place now is another node.
  if (focused.id && !focused.isConnected) document.getElementById(focused.id)?.focus({ preventScroll: true });
}

function sayAges() {
  for (const time of document.querySelectorAll("time[data-ms]")) {
    const seconds = Math.max(0, Math.round((Date.now() + aheadMs - Number(time.dataset.ms)) / 1000));
    const text = seconds < 120 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`;
    time.dataset.ago = text;
  }
}

function heard(event) {
  const body = JSON.parse(event.data);
  if (body.build !== document.body.dataset.build) { location.reload(); return; }
  failures = 0;
  heardAt = Date.now();
  return body;
}

function onReading(event) {
  const body = heard(event);
  if (!body) return;
  waiting = { ...body, parts: { ...waiting?.parts, ...body.parts } };
  if (pressed === null) showReading();
}

function showReading() {
  if (waiting === null) return;
  const body = waiting;
  waiting = null;
  for (const [name, html] of Object.entries(body.parts)) swap(name, html);
  readAt = body.at;
  aheadMs = body.now_ms - Date.now();
  document.title = body.title;
  if (said.textContent !== body.said) said.textContent = body.said;
  unread.hidden = true;
  old(false);
  sayAges();
  show("live", "Live");
}

// A click is a press and a letting go on the same node, so nothing changes between the two.
function press() {
  clearTimeout(pressed);
  pressed = setTimeout(letGo, PRESSED_MS);
}

function release() {
  clearTimeout(pressed);
  pressed = setTimeout(letGo, 0); // the click comes first
}

function letGo() {
  pressed = null;
  showReading();
}

function onUnread(event) {
  const body = heard(event);
  if (!body) return;
  waiting = null; // the next reading holds everything
  unreadText.textContent = `Since ${body.since}: ${body.failed}`;
  unread.hidden = false;
  old(true);
  show("not-live", "Not live: the queue cannot be read");
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
  if (document.visibilityState === "hidden") return;
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
document.addEventListener("pointerup", release);
document.addEventListener("pointercancel", release);
watchOrRest();
