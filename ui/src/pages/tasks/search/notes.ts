/** What is good to know about a search that is right in itself. */
import type { TaskPage } from "@/api/model";
import { type Filter, searches } from "@/pages/tasks/search/filter";
import type { Known } from "@/pages/tasks/search/suggest";

/** What any list counts to, and one of words, which takes longer. */
const COUNTED = 10_000;
const WORDS_COUNTED = 1_000;

type Totals = Pick<TaskPage, "total" | "totalCapped">;

/** Whether the search has looked at the newest tasks only. */
export function stopped(filter: Filter, page: Totals | undefined): boolean {
  const counted = filter.words.length > 0 ? WORDS_COUNTED : COUNTED;
  return searches(filter) && page?.totalCapped === true && page.total < counted;
}

/** `page`: what was found, once it is there. */
export function notesOn(filter: Filter, known: Known | null, page: Totals | undefined): string[] {
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
  if (filter.words.length > 0 || filter.payload.length > 0) notes.push(IN_PAYLOADS);
  if (stopped(filter, page)) {
    notes.push(
      "Counted among up to 20,000 of the newest tasks that meet the other conditions. The next pages look at older ones.",
    );
  }
  return notes;
}

const IN_PAYLOADS = "Payloads of more than 10,000 bytes, and what is masked in them, are not searched.";

function perhaps(wrong: string, known: readonly string[]): string {
  if (wrong.length < 3) return "";
  const wanted = wrong.toLowerCase();
  const near = known.find((each) => each.toLowerCase().includes(wanted) || wanted.includes(each.toLowerCase()));
  return near === undefined ? "" : ` Did you mean “${near}”?`;
}
