import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { aboutQuery } from "@/api/queries";
import { escapeText } from "@/text/escape";

/** The environment first: of the titles of many tabs only the beginnings are seen. */
export function usePageTitle(title: string): void {
  const environment = useQuery(aboutQuery).data?.environment;
  useEffect(() => {
    document.title = `${escapeText(environment ? `${environment}: ${title}` : title)} - tasklib`;
  }, [title, environment]);
}
