import type { Series } from "@/api/model";

/** The first start of a version, at the step that it falls into. */
export interface Mark {
  version: string;
  at: number;
  /** Near the end of the time that is shown: there is more room before it. */
  late: boolean;
  /** Exactly, ISO 8601. */
  startedAt: string;
}

export function marksOf({ versions, points, stepMinutes }: Series): Mark[] {
  const length = stepMinutes * 60_000;
  return versions.flatMap(({ version, at: startedAt }) => {
    const started = Date.parse(startedAt);
    const steps = points.map(({ at }) => Date.parse(at));
    const place = steps.findIndex((at) => at <= started && started < at + length);
    const at = steps[place];
    return at === undefined ? [] : [{ version, at, late: place > steps.length / 2, startedAt }];
  });
}
