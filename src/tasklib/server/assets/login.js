"use strict";

const form = document.getElementById("form");
const field = document.getElementById("token");
const message = document.getElementById("message");

async function signIn(token) {
  const answer = await fetch("api/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
  const body = await answer.json();
  if (answer.ok) {
    form.hidden = true;
    message.textContent = `Signed in as ${body.label} (${body.role}).`;
  } else {
    message.textContent = body.detail;
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(field.value).catch((error) => { message.textContent = String(error); });
});

// A login link carries its token behind the #, which browsers do not send; it goes from the address bar at once.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  history.replaceState(null, "", location.pathname);
  signIn(given).catch((error) => { message.textContent = String(error); });
}
