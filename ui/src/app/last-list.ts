/** The list as it was last seen, so that the way back from a task leads to the same filters and the same page. */
const KEY = "tasklib.list";

export type ListSearch = Record<string, unknown>;

let last: ListSearch | null = null;

export function rememberList(search: ListSearch): void {
  last = search;
  try {
    sessionStorage.setItem(KEY, JSON.stringify(search));
  } catch {
    // A browser that keeps nothing: it holds until the page is loaded anew.
  }
}

export function lastList(): ListSearch {
  last ??= stored();
  return last;
}

function stored(): ListSearch {
  try {
    const found: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
    return typeof found === "object" && found !== null ? { ...found } : {};
  } catch {
    return {};
  }
}
