import type { Series } from "@/api/model";

/** The first start of a version, at the step that it falls into. */
export interface Mark {
  version: string;
  at: number;
  /** Exactly, ISO 8601. */
  startedAt: string;
}

export function marksOf({ versions, points, stepMinutes }: Series): Mark[] {
  const length = stepMinutes * 60_000;
  return versions.flatMap(({ version, at: startedAt }) => {
    const started = Date.parse(startedAt);
    const step = points.map(({ at }) => Date.parse(at)).find((at) => at <= started && started < at + length);
    return step === undefined ? [] : [{ version, at: step, startedAt }];
  });
}
