package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// NewRoot completes the root command of a program: its version, its streams, and
// mistakes in flags as UsageErrors. Run says what failed, so cobra does not.
func NewRoot(cmd *cobra.Command, s *Streams) *cobra.Command {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetIn(s.In)
	cmd.SetOut(s.Out)
	cmd.SetErr(s.Err)
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	cmd.SetFlagErrorFunc(flagMistake)
	versionFlag(cmd, cmd.Name())
	return cmd
}

// versionFlag gives a command -V. In all programs -v stands for verbose, for
// which cobra would take it where it is free.
func versionFlag(cmd *cobra.Command, program string) {
	cmd.Version = Version()
	cmd.SetVersionTemplate(program + " {{.Version}}\n")
	if cmd.Flags().ShorthandLookup("V") == nil {
		cmd.Flags().BoolP("version", "V", false, "show the version and the commit it was built from")
	} else {
		cmd.Flags().Bool("version", false, "show the version and the commit it was built from")
	}
}

// versionBelow gives the commands below one the same flag, without a line in their
// help.
func versionBelow(cmd *cobra.Command, program string) {
	for _, c := range cmd.Commands() {
		if c.Flags().Lookup("version") == nil {
			versionFlag(c, program)
			_ = c.Flags().MarkHidden("version")
		}
		versionBelow(c, program)
	}
}
