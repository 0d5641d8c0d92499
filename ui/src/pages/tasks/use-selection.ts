import type { OnChangeFn, RowSelectionState } from "@tanstack/react-table";
import { useState } from "react";

interface Selection {
  view: string;
  rows: RowSelectionState;
  /** Everything that matches, on other pages too. */
  all: boolean;
}

/** What is selected of this page. Another page or search starts with nothing: nobody acts on what he does not see. */
export function useSelection(view: string) {
  const nothing: Selection = { view, rows: {}, all: false };
  const [state, setState] = useState(nothing);
  const selection = state.view === view ? state : nothing;

  const change: OnChangeFn<RowSelectionState> = (update) =>
    setState((had) => {
      const rows = had.view === view ? had.rows : {};
      return { view, rows: typeof update === "function" ? update(rows) : update, all: false };
    });

  return {
    rows: selection.rows,
    all: selection.all,
    change,
    selectAll: () => setState({ ...selection, all: true }),
    clear: () => setState(nothing),
  };
}
