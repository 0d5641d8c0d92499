import { useMutation, useQueryClient } from "@tanstack/react-query";
import { showError, showToast } from "@/components/toast";

/** Does something to the queue, says how it went, and has every page read again what it shows. */
export function useAction<Given, Result>(
  act: (given: Given) => Promise<Result>,
  done?: (result: Result, given: Given) => string | null,
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: (result, given) => {
      const said = done?.(result, given);
      if (said) showToast(said);
    },
    onError: showError,
    onSettled: () => queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" }),
  });
}
