import { useQuery } from "@tanstack/react-query";
import { aboutQuery } from "@/api/queries";
import { type EnvironmentKind, kindOf } from "@/app/environment";
import { classes } from "@/components/classes";
import { SafeText } from "@/components/safe-text";

const TONES: Record<EnvironmentKind, string> = {
  production: "bg-failed-soft text-failed",
  development: "bg-completed-soft text-completed",
  other: "bg-processing-soft text-processing",
};

/** Which queue this is, so that nobody takes production for staging. */
export function EnvironmentBadge() {
  const { data: about } = useQuery(aboutQuery);
  if (!about) return null;
  return (
    <span className="flex min-w-0 items-center gap-2">
      {about.environment && (
        <span
          data-environment={kindOf(about.environment)}
          title="The environment of this server"
          className={classes(
            "max-w-40 truncate rounded-full border border-current px-2 py-0.5 font-semibold text-xs",
            TONES[kindOf(about.environment)],
          )}
        >
          <SafeText text={about.environment} max={60} />
        </span>
      )}
      <span className="hidden text-faint text-xs lg:inline">
        <SafeText text={about.engine} /> · {about.version}
      </span>
    </span>
  );
}
