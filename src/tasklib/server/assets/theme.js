"use strict";

// Before anything is painted: the theme that was chosen last, or else the system's.
{
  let chosen = null;
  try {
    chosen = localStorage.getItem("tasklib.theme");
  } catch {
    // A browser that keeps nothing follows the system.
  }
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.classList.toggle("dark", dark);
}
