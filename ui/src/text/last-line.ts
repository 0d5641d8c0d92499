/** What went wrong, in one line: the last of a traceback, past the indented notes that may follow the exception. */
export function lastLine(error: string | null | undefined): string {
  const lines = (error ?? "").split(/\r?\n/).filter((line) => line.trim() !== "");
  return (lines.findLast((line) => /^\S/.test(line)) ?? lines.at(-1) ?? "").trim();
}
