import { useEffect } from "react";
import { escapeText } from "@/text/escape";

export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${escapeText(title)} - tasklib`;
  }, [title]);
}
