import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark" | "system";

const KEY = "tasklib.theme"; // read by assets/theme.js too, before the first paint
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

let chosen: Theme = stored();

function stored(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system";
  }
}

function apply(): void {
  document.documentElement.classList.toggle("dark", isDark());
  for (const listener of listeners) listener();
}

function isDark(): boolean {
  return chosen === "dark" || (chosen === "system" && system.matches);
}

function choose(theme: Theme): void {
  chosen = theme;
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // A browser that keeps nothing: it holds until the page is closed.
  }
  apply();
}

system.addEventListener("change", apply);
window.addEventListener("storage", (event) => {
  if (event.key !== KEY) return;
  chosen = stored();
  apply();
});

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTheme(): { theme: Theme; dark: boolean; choose: (theme: Theme) => void } {
  const theme = useSyncExternalStore(subscribe, () => chosen);
  const dark = useSyncExternalStore(subscribe, isDark);
  return { theme, dark, choose };
}
