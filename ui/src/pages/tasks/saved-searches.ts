/** Searches under a name, kept by this browser for whoever uses it. */
import type { TasksSearch } from "@/router";

export interface SavedSearch {
  name: string;
  /** Without a place in the list: it begins at its first page. */
  search: Omit<TasksSearch, "cursor" | "limit">;
}

export const MOST_SAVED = 50;
export const LONGEST_NAME = 60;
const KEY = "tasklib.searches";

export function savedSearches(): SavedSearch[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter(isSaved) : [];
  } catch {
    return [];
  }
}

/** In place of the one with the same name, if there is one; the latest first. False: the browser keeps nothing. */
export function saveSearch(saved: SavedSearch): boolean {
  return keep([saved, ...savedSearches().filter(({ name }) => name !== saved.name)].slice(0, MOST_SAVED));
}

export function forgetSearch(name: string): boolean {
  return keep(savedSearches().filter((each) => each.name !== name));
}

function keep(all: readonly SavedSearch[]): boolean {
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
    return true;
  } catch {
    return false;
  }
}

function isSaved(value: unknown): value is SavedSearch {
  if (typeof value !== "object" || value === null) return false;
  const { name, search } = value as Partial<SavedSearch>;
  if (typeof name !== "string" || typeof search !== "object" || search === null) return false;
  return Object.values(search).every((part) => typeof part === "string");
}
