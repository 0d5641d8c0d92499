import { Link } from "@tanstack/react-router";
import { CirclePause, SlidersHorizontal, TriangleAlert } from "lucide-react";
import { setType } from "@/api/actions";
import type { TaskType } from "@/api/model";
import { PausedBy } from "@/app/paused-by";
import { rateShown } from "@/app/rate-choice";
import { IconButton } from "@/components/button";
import { SafeText } from "@/components/safe-text";
import { Switch } from "@/components/switch";
import { useAction } from "@/hooks/use-action";
import { qualified } from "@/pages/tasks/search/qualified";
import type { Figure } from "@/pages/types/figures";
import { isStranded } from "@/pages/types/sorting";
import { escapeText } from "@/text/escape";
import { count } from "@/text/number";

export interface TypeProps {
  type: TaskType;
  mayOperate: boolean;
  onLimits: (type: string) => void;
}

/** The way to its page, and what somebody has to know of it. */
export function TypeName({ type }: { type: TaskType }) {
  return (
    <>
      <Link
        to="/types/$type"
        params={{ type: type.type }}
        className="mr-2 min-w-0 break-words font-medium text-accent hover:underline"
      >
        <SafeText text={type.type} max={120} />
      </Link>
      <TypeState type={type} />
    </>
  );
}

/** Its queue, whether it is paused, and whether tasks wait that nobody works on: how many, its figures say. */
export function TypeState({ type }: { type: TaskType }) {
  return (
    <>
      {type.queue && type.queue !== "default" && (
        <span data-figure="queue" className="mr-2 rounded bg-raised px-1.5 py-0.5 text-dim text-xs">
          queue <SafeText text={type.queue} max={60} />
        </span>
      )}
      {type.paused && (
        <span className="inline-flex h-5 items-center gap-1 rounded-full bg-processing-soft px-2 font-medium text-processing text-xs">
          <CirclePause className="size-3.5" aria-hidden="true" />
          Paused
        </span>
      )}
      {type.paused && <PausedBy control={type} />}
      {isStranded(type) && (
        <p className="flex items-start gap-1 text-failed text-xs">
          <TriangleAlert className="mt-0.5 size-3.5 shrink-0" aria-hidden="true" />
          No live worker
        </p>
      )}
    </>
  );
}

/** A figure, and the way to the tasks that it counts. */
export function FigureLink({ figure }: { figure: Figure }) {
  if (figure.empty) return <span className="text-faint">{figure.text}</span>;
  return figure.search ? (
    <Link to="/tasks" search={{ q: qualified(figure.search) }} className="hover:text-accent hover:underline">
      {figure.text}
    </Link>
  ) : (
    <span>{figure.text}</span>
  );
}

export function Limits({ type, mayOperate, onLimits, none = "none" }: TypeProps & { none?: string }) {
  const rate = rateShown(type);
  const limited = rate.by !== null || type.concurrency != null;
  return (
    <div className="flex items-center justify-between gap-2 whitespace-nowrap">
      <span data-figure="limits" className="text-xs">
        {limited ? (
          <>
            {rate.by && (
              <span className="block">
                {rate.text === "none" ? "no rate limit" : rate.text} <span className="text-dim">by the {rate.by}</span>
              </span>
            )}
            {type.concurrency != null && <span className="block">{count(type.concurrency)} at once</span>}
          </>
        ) : (
          <span className="text-faint">{none}</span>
        )}
      </span>
      {mayOperate && (
        <IconButton
          size="small"
          label={`Limits of ${escapeText(type.type).slice(0, 80)}`}
          onClick={() => onLimits(type.type)}
        >
          <SlidersHorizontal className="size-3.5" aria-hidden="true" />
        </IconButton>
      )}
    </div>
  );
}

/** `text`: what stands beside the switch, where no header says what it does. */
export function Pause({ type, mayOperate, text }: { type: TaskType; mayOperate: boolean; text?: string }) {
  const name = escapeText(type.type).slice(0, 60);
  const set = useAction(
    (paused: boolean) => setType(type.type, { paused }),
    "toast",
    (_, paused) => (paused ? `${name} is paused: no worker starts one.` : `${name} is started again.`),
  );
  const paused = set.isPending ? set.variables : type.paused;
  return mayOperate ? (
    <Switch
      label={`Pause ${name}`}
      text={text}
      checked={paused}
      busy={set.isPending}
      onChange={(value) => set.mutate(value)}
    />
  ) : (
    <span className={paused ? "" : "text-faint"}>{paused ? "yes" : "no"}</span>
  );
}
