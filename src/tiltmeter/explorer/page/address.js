// The address: which page, and its state, in words that can be read and sent to somebody.
export function readAddress() {
  const [page, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { page, query: new URLSearchParams(query) };
}

// With `push`, Back returns to the state before: for what was chosen, not for what is being moved.
export function writeAddress(page, query, push = false) {
  const text = [...query].map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2C", ",").replaceAll("%2F", "/")}`).join("&");
  const address = `#${page}${text ? `?${text}` : ""}`;
  if (address !== location.hash) history[push ? "pushState" : "replaceState"](null, "", address);
}
