/** What is good to know about a search that is right in itself. */
import type { Counts } from "@/api/model";
import type { Filter } from "@/pages/tasks/search/filter";
import type { Known } from "@/pages/tasks/search/suggest";

const SEARCHED = 50_000;

export function notesOn(filter: Filter, known: Known | null, counts: Counts | undefined): string[] {
  const notes: string[] = [];
  if (known) {
    for (const type of filter.types) {
      if (!known.types.includes(type)) notes.push(`No task type is called “${type}”.${perhaps(type, known.types)}`);
    }
    if (filter.prefix !== null && !known.types.some((type) => type.startsWith(filter.prefix ?? ""))) {
      notes.push(`No task type starts with “${filter.prefix}”.`);
    }
    if (filter.worker !== null && !known.workers.includes(filter.worker)) {
      notes.push(`No live worker is called “${filter.worker}”. Only tasks that run now have a worker.`);
    }
  }
  if ((filter.error !== null || filter.tags.length > 0) && counts && totalOf(counts) > SEARCHED) {
    notes.push("Searches by tag or error look at the newest 50,000 tasks only.");
  }
  return notes;
}

function totalOf(counts: Counts): number {
  return counts.pending + counts.processing + counts.completed + counts.failed + counts.cancelled;
}

function perhaps(wrong: string, known: readonly string[]): string {
  if (wrong.length < 3) return "";
  const wanted = wrong.toLowerCase();
  const near = known.find((each) => each.toLowerCase().includes(wanted) || wanted.includes(each.toLowerCase()));
  return near === undefined ? "" : ` Did you mean “${near}”?`;
}
