// The address: which page, and its state, in words that can be read and sent to somebody.
export function readAddress() {
  const [page, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { page, query: new URLSearchParams(query) };
}

export function writeAddress(page, query) {
  const text = [...query].map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2C", ",").replaceAll("%2F", "/")}`).join("&");
  history.replaceState(null, "", `#${page}${text ? `?${text}` : ""}`);
}
