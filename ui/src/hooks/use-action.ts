import { useMutation, useQueryClient } from "@tanstack/react-query";
import { showError, showToast } from "@/components/toast";

/**
 * Does something to the queue, says how it went, and has every page read again what it shows. A failure is shown once:
 * in a toast, or by the dialog that waits for the action, which then uses `mutateAsync`.
 */
export function useAction<Given, Result>(
  act: (given: Given) => Promise<Result>,
  failuresIn: "toast" | "dialog",
  done?: (result: Result, given: Given) => string | null,
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: (result, given) => {
      const said = done?.(result, given);
      if (said) showToast(said);
    },
    onError: (error) => {
      if (failuresIn === "toast") showError(error);
    },
    onSettled: () => queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" }),
  });
}
