/** Where the dashboard is mounted, as the server says with <base href>. */
export const BASE = new URL(document.baseURI);

export function addressOf(path: string): string {
  return new URL(path.replace(/^\//, ""), BASE).href;
}

let leaving = false;

/** Once, however many requests are refused; the login page comes back to here. */
export function goToLogin(): void {
  if (leaving) return;
  leaving = true;
  const here = location.pathname.slice(BASE.pathname.length) + location.search;
  location.assign(addressOf(here ? `login?next=${encodeURIComponent(here)}` : "login"));
}
