package cli

import "github.com/spf13/cobra"

// NewRoot completes the root command of a program: its version, its streams, and
// mistakes in flags as UsageErrors. Run says what failed, so cobra does not.
func NewRoot(cmd *cobra.Command, s *Streams) *cobra.Command {
	cmd.Version = Version()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetVersionTemplate(cmd.Name() + " {{.Version}}\n")
	cmd.SetIn(s.In)
	cmd.SetOut(s.Out)
	cmd.SetErr(s.Err)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &UsageError{err} })
	return cmd
}
