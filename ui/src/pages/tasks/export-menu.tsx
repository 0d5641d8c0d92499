import { ChevronDown, Download } from "lucide-react";
import type { TaskQuery } from "@/api/model";
import { addressOf } from "@/api/place";
import { Button } from "@/components/button";
import { Menu, MenuItem, MenuLabel } from "@/components/menu";

/** Everything that matches, as a file. */
export function ExportMenu({ query }: { query: TaskQuery }) {
  return (
    <Menu
      label="Export"
      trigger={
        <Button icon={<Download className="size-4" aria-hidden="true" />}>
          <span className="max-md:sr-only">Export</span>
          <ChevronDown className="size-4" aria-hidden="true" />
        </Button>
      }
    >
      <MenuItem onSelect={() => download(query, "csv")}>CSV, for a spreadsheet</MenuItem>
      <MenuItem onSelect={() => download(query, "json")}>JSON</MenuItem>
      <MenuLabel>All that match, newest first, up to 100,000. Long values are cut as in the list.</MenuLabel>
    </Menu>
  );
}

/** The browser asks where to put it, or puts it where it always does. */
function download(query: TaskQuery, format: string): void {
  const link = document.createElement("a");
  link.href = addressOf(`api/tasks/export?${exportQuery(query, format)}`);
  link.download = `tasks.${format}`;
  link.click();
}

export function exportQuery(query: TaskQuery, format: string): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((each): [string, string] => [name, String(each)]),
  );
  return new URLSearchParams([["format", format], ...pairs]).toString();
}
