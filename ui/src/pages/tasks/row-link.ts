import type { MouseEvent } from "react";
import { addressOf } from "@/api/place";

/** What has a meaning of its own inside a row. */
const OWN = "a, button, input, label, [role=menu]";

/** The whole row leads to the task as a link does: in a new tab with the middle button or a key held down. The link in it
 * is for keyboards and screen readers. */
export function rowLink(id: string, onOpen: (id: string) => void) {
  const inNewTab = () => window.open(addressOf(`tasks/${id}`), "_blank", "noopener");
  return {
    onClick: (event: MouseEvent) => {
      if (isOwn(event) || window.getSelection()?.toString()) return; // who selects text does not want to leave
      if (event.ctrlKey || event.metaKey || event.shiftKey) inNewTab();
      else onOpen(id);
    },
    onMouseDown: (event: MouseEvent) => {
      if (event.button === 1 && !isOwn(event)) event.preventDefault(); // would begin to scroll
    },
    onAuxClick: (event: MouseEvent) => {
      if (event.button === 1 && !isOwn(event)) inNewTab();
    },
  };
}

function isOwn({ target }: MouseEvent): boolean {
  return target instanceof Element && target.closest(OWN) !== null;
}
