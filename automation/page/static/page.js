// Keep the page live: take the parts that changed from the stream, and say plainly when it is not live.
"use strict";

const QUIET_MS = 3000; // without a reading for so long, what is shown is old
const AGAIN_MS = [500, 1000, 2000, 4000];

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

function show(state, text) {
  if (live.dataset.state !== state) live.dataset.state = state;
  if (liveText.textContent !== text) liveText.textContent = text;
}

function old(isOld) {
  parts.toggleAttribute("data-old", isOld);
}

function swap(name, html) {
  const place = document.querySelector(`[data-part="${name}"]`);
  if (place === null) return;
  const active = document.activeElement;
  const focused = place.contains(active) ? active.id || active.closest("[id]")?.id : "";
  const scrolled = [...place.querySelectorAll(".wide")].map((one) => one.scrollLeft);
  const opened = [...place.querySelectorAll("details[open]")].map((one) => one.id);
  place.innerHTML = html;
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  [...place.querySelectorAll(".wide")].forEach((one, at) => { one.scrollLeft = scrolled[at] || 0; });
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
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
  for (const [name, html] of Object.entries(body.parts)) swap(name, html);
  readAt = body.at;
  aheadMs = body.now_ms - Date.now();
  document.title = body.title;
  if (said.textContent !== body.said) said.textContent = body.said;
  unread.hidden = true;
  old(false);
  sayAges();
  show("live", "Live");
  document.documentElement.dataset.version = body.version;
}

function onUnread(event) {
  const body = heard(event);
  if (!body) return;
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
watchOrRest();
