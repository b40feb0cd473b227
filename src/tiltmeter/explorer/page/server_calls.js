// Questions to the server. A newer question to the same address makes an older one void, so no late answer overwrites it.
const asked = new Map();

export async function ask(address, settings = {}, { slot = address, body = null } = {}) {
  asked.get(slot)?.abort();
  const control = new AbortController();
  asked.set(slot, control);
  const query = new URLSearchParams(settings).toString();
  const options = { signal: control.signal };
  if (body !== null) Object.assign(options, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const answer = await fetch(query ? `${address}?${query}` : address, options);
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error ?? "The server did not answer.");
  return told;
}

// A file, as plain bytes.
export async function send(address, settings, file) {
  const answer = await fetch(`${address}?${new URLSearchParams(settings)}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
  const told = await answer.text();
  if (answer.ok) return JSON.parse(told);
  throw new Error(told.startsWith("{") ? JSON.parse(told).error : told);
}

export function wasReplaced(error) {
  return error.name === "AbortError";
}
