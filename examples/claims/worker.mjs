// A worker in JavaScript, for Node 18 or newer, with nothing to install: TASKLIB_TOKEN=... node worker.mjs
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";

const url = process.env.TASKLIB_URL ?? "http://127.0.0.1:8700";
const workerId = `${hostname()}-${process.pid}-${randomUUID()}`;
const leaseSeconds = 60;
const stopping = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => stopping.abort());

const handlers = {
  "resize-image": async ({ width, height }, stop) => ({ width: width / 2, height: height / 2 }),
  "greet": async ({ name }, stop) => {
    if (!name) throw new Error("nobody to greet");
    return `Hello ${name}!`;
  },
};

async function post(path, body, signal) {
  const headers = { "Authorization": `Bearer ${process.env.TASKLIB_TOKEN}`, "Content-Type": "application/json" };
  const request = { method: "POST", headers, body: JSON.stringify({ workerId, ...body }), signal };
  const answer = await fetch(`${url}/api/claims${path}`, request);
  const content = await answer.json();
  if (!answer.ok) throw new Error(`${content.code}: ${content.detail}`);
  return content;
}

async function work({ id, type, version, payload }) {
  const stop = new AbortController(); // the claim was lost, or somebody asked the task to stop
  const extend = () => post(`/${id}/extend`, { version, leaseSeconds });
  const keep = setInterval(
    () => extend().then((claim) => claim.cancelRequested && stop.abort(), () => stop.abort()),
    (leaseSeconds / 3) * 1000,
  );
  const outcome = await handlers[type](payload, stop.signal).then(
    (result) => ["complete", { result }],
    (error) => ["fail", { error: error.stack ?? String(error) }],
  );
  clearInterval(keep);
  const settled = await post(`/${id}/${outcome[0]}`, { version, ...outcome[1] });
  console.log(id, type, settled.status);
}

while (!stopping.signal.aborted) {
  try {
    const types = Object.keys(handlers);
    const { claims } = await post("", { types, limit: 4, leaseSeconds, waitSeconds: 20 }, stopping.signal);
    await Promise.all(claims.map(work));
  } catch (error) {
    if (stopping.signal.aborted) break;
    console.error(String(error)); // the server is away, or a claim was lost: what it was for is tried again
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}
