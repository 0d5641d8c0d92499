/** The line of an error that says what happened: a traceback ends with it. */
export function lastLine(error: string | null | undefined): string {
  return (
    (error ?? "")
      .split(/\r?\n/)
      .map((line) => line.trim())
      .findLast((line) => line !== "") ?? ""
  );
}
