"use strict";

const form = document.getElementById("form");
const field = document.getElementById("token");
const message = document.getElementById("message");

function goOn() {
  // Only to pages of ours: the address may have come from anywhere.
  const home = new URL("./", location.href);
  let wanted = home;
  try {
    wanted = new URL(new URLSearchParams(location.search).get("next") ?? "", home);
  } catch {
    // No address at all: home it is.
  }
  const ours = wanted.origin === home.origin && wanted.pathname.startsWith(home.pathname);
  location.replace(ours ? wanted : home);
}

async function signIn(token) {
  message.textContent = "";
  const answer = await fetch("api/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
  if (answer.ok) {
    goOn();
    return;
  }
  const body = await answer.json();
  message.textContent = body.detail;
  field.select();
  field.focus();
}

function trySignIn(token) {
  signIn(token).catch(() => { message.textContent = "The server does not answer. Is it running?"; });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  trySignIn(field.value);
});

async function goOnIfSignedIn() {
  const answer = await fetch("api/session");
  if (answer.ok) goOn();
}

// A login link carries its token behind the #, which browsers do not send; it goes from the address bar at once.
function followLink() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return false;
  history.replaceState(null, "", location.pathname + location.search);
  trySignIn(given);
  return true;
}

addEventListener("hashchange", followLink); // the link, opened where this page is shown already
if (!followLink()) {
  field.focus();
  // Who follows a link on another site is sent here although signed in: browsers hold back the cookie then.
  if (new URLSearchParams(location.search).has("elsewhere")) goOnIfSignedIn().catch(() => {});
}
