import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark" | "system";

const KEY = "tasklib.theme"; // read by assets/theme.js too, before the first paint
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

let chosen: Theme = stored();
let dark = false;

function stored(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system";
  }
}

// The only place that reads `system.matches`. Browsers tell of a change only if nobody has read the new value before: a
// component that read it while it renders would leave the page in the old theme.
function apply(): void {
  dark = chosen === "dark" || (chosen === "system" && system.matches);
  document.documentElement.classList.toggle("dark", dark);
  for (const listener of listeners) listener();
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

apply();
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
  return { theme, dark: useSyncExternalStore(subscribe, () => dark), choose };
}
