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

let lastTask: string | null = null;

export function rememberTask(id: string): void {
  lastTask = id;
}

/** The task whose page was left last, once: its row gets the focus back. */
export function takeLastTask(): string | null {
  const taken = lastTask;
  lastTask = null;
  return taken;
}

function stored(): ListSearch {
  try {
    const found: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
    return typeof found === "object" && found !== null ? { ...found } : {};
  } catch {
    return {};
  }
}
