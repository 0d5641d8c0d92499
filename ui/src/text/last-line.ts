/** Whether the middle of an error was left out when it was stored, because it was too long. */
export function isCut(error: string): boolean {
  return error.includes("\n... cut ...\n");
}

export const CUT_NOTE = "Too long to keep: its beginning and its end are shown.";

/** What went wrong, in one line: the last of a traceback, past the indented notes that may follow the exception. */
export function lastLine(error: string | null | undefined): string {
  const lines = (error ?? "").split(/\r?\n/).filter((line) => line.trim() !== "");
  return (lines.findLast((line) => /^\S/.test(line)) ?? lines.at(-1) ?? "").trim();
}
