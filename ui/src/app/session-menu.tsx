import { useNavigate } from "@tanstack/react-router";
import { Braces, CircleUser, LogOut, Monitor, Moon, Sun } from "lucide-react";
import { logOut } from "@/api/actions";
import { addressOf } from "@/api/place";
import { IconButton } from "@/components/button";
import { Menu, MenuChoice, MenuItem, MenuLabel, MenuSeparator } from "@/components/menu";
import { SafeText } from "@/components/safe-text";
import { showError } from "@/components/toast";
import { useSession } from "@/hooks/use-session";
import { type Theme, useTheme } from "@/hooks/use-theme";

const icon = "size-4";
const THEMES = [
  { value: "light", label: "Light", icon: <Sun className={icon} aria-hidden="true" /> },
  { value: "dark", label: "Dark", icon: <Moon className={icon} aria-hidden="true" /> },
  { value: "system", label: "As the system", icon: <Monitor className={icon} aria-hidden="true" /> },
] as const;

/** Who is signed in, the theme, the API, and the way out. */
export function SessionMenu() {
  const { session } = useSession();
  const { theme, choose } = useTheme();
  const navigate = useNavigate();

  function leave() {
    logOut().then(() => location.assign(addressOf("login")), showError);
  }

  return (
    <Menu
      label="You"
      trigger={
        <IconButton label="Session and theme">
          <CircleUser className={icon} aria-hidden="true" />
        </IconButton>
      }
    >
      {session && (
        <MenuLabel>
          <span className="block font-medium text-text">
            <SafeText text={session.label} max={60} />
          </span>
          {session.role}
          {!session.may.includes("operate") && ": may look, not change"}
        </MenuLabel>
      )}
      <MenuSeparator />
      <MenuChoice label="Theme" value={theme} options={THEMES} onChange={(value) => choose(value as Theme)} />
      <MenuSeparator />
      <MenuItem
        icon={<Braces className={icon} aria-hidden="true" />}
        onSelect={() => void navigate({ to: "/api/docs" })}
      >
        HTTP API
      </MenuItem>
      <MenuItem icon={<LogOut className={icon} aria-hidden="true" />} onSelect={leave}>
        Sign out
      </MenuItem>
    </Menu>
  );
}
