package cli

import (
	"bytes"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// program is one like ours: its root takes files, has commands below it, and has
// flags of all types.
func program(s *Streams) *cobra.Command {
	root := NewRoot(&cobra.Command{Use: "tool [FILE...]", Args: CommandOrFile, RunE: func(*cobra.Command, []string) error { return nil }}, s)
	f := root.Flags()
	f.Uint64P("count", "c", 0, "")
	f.Int("top", 0, "")
	NumberVar(f, new(int), "rings", 1, 64, "")
	PositiveVar(f, new(int), "limit", "")
	f.Uint16("port", 0, "")
	f.Bool("nano", false, "")
	f.StringP("filter", "Y", "", "")
	f.Var(new(Size), "memory", "")
	DurationVarP(f, new(time.Duration), "interval", "d", time.Second, "")
	only := &cobra.Command{Use: "export", Args: CommandOnly, RunE: func(*cobra.Command, []string) error { return nil }}
	only.AddCommand(&cobra.Command{Use: "parquet", Args: NoArgs, RunE: func(*cobra.Command, []string) error { return nil }})
	report := &cobra.Command{Use: "report", RunE: func(*cobra.Command, []string) error { return nil }}
	report.Flags().CountP("verbose", "v", "")
	report.Flags().String("by", "", "")
	Habits(root, map[string]string{"w": "'tool export' writes files"})
	root.AddCommand(only, report, &cobra.Command{Use: "packets", RunE: func(*cobra.Command, []string) error { return nil }})
	return root
}

func TestMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("repors", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"", 0, ""},
		{"report", 0, ""},
		{"repors", 0, ""}, // a file
		{"missing.pcap", 0, ""},
		{"./repot", 0, ""},
		{"-", 0, ""},
		{"--rings 1 --rings 64 --limit 1", 0, ""},
		{"--rings 0", 2, "--rings 0: use a number from 1 to 64"},
		{"--rings 65", 2, "--rings 65: use a number from 1 to 64"},
		{"--rings 1.5", 2, "--rings 1.5: not a whole number"},
		{"--limit -1", 2, "--limit -1: use a number of at least 1"},
		{"repot", 2, `there is no command and no file "repot"; did you mean 'report'?`},
		{"rep0rt", 2, `did you mean 'report'?`},
		{"pack", 2, `did you mean 'packets'?`},
		{"repot --by client x.pcap", 2, `did you mean 'report'?`},
		{"--help report", 2, `"report" is a command: write it first, as in 'tool report ...'`},
		{"-- report", 2, `"report" is a command: write it first`},
		{"x.pcap report", 2, `"report" is a command: write it first`},
		{"x.pcap y.pcap report --by client", 2, `"report" is a command: write it first`},
		{"x.pcap repors", 0, ""},
		{"x.pcap nosuch", 0, ""}, // to be opened
		{"nosuch", 2, `there is no command and no file "nosuch"; the commands are completion, export, help, packets, report`},
		{"export parket", 2, `there is no command "parket"; did you mean 'parquet'?`},
		{"export parquet x", 2, `parquet takes no arguments, but "x" was given`},
		{"help repot", 2, `there is no command "repot"; did you mean 'report'?`},
		{"help export parket", 2, `did you mean 'parquet'?`},
		{"completion bsh", 2, `did you mean 'bash'`},
		{"completion", 2, "name a shell"},
		{"--filtr x", 2, "unknown flag --filtr; did you mean --filter?"},
		{"--by op", 2, "unknown flag --by: 'tool report' has --by, 'tool' does not\n"},
		{"packets --by op", 2, "unknown flag --by: 'tool report' has --by, 'tool packets' does not\n"},
		{"report --port 1", 2, "unknown flag --port: 'tool' has --port, 'tool report' does not\n"},
		{"--xyzzy", 2, "unknown flag --xyzzy\n"},
		{"-y x", 2, "unknown flag -y; did you mean -Y, --filter?"},
		{"-w x", 2, "unknown flag -w: 'tool export' writes files\n"},
		{"-nw x", 2, "unknown flag -n in -nw"},
		{"host 10.0.0.1", 2, `there is no command and no file "host"; a filter goes with -Y, --filter`},
		{"-top 1", 2, "unknown flag -t in -top; did you mean --top?"},
		{"-v", 2, "unknown flag -v: nothing is more verbose here; -V shows the version"},
		{"-c x", 2, "tool: -c x: not a number\n"},
		{"-c -1", 2, "-c -1: negative"},
		{"-c 1.5", 2, "-c 1.5: not a whole number"},
		{"-c 99999999999999999999", 2, "out of range"},
		{"--port 65536", 2, "--port 65536: out of range"},
		{"--top -1", 0, ""},
		{"--top x", 2, "--top x: not a number"},
		{"--nano=x", 2, "--nano x: neither true nor false"},
		{"--memory x", 2, `--memory: "x" is not a size`},
		{"-c", 2, "-c, --count needs a value"},
		{"-d 2", 0, ""}, {"-d 0.5", 0, ""}, {"--interval 500ms", 0, ""}, {"--interval=2", 0, ""},
		{"-d 2x", 2, "-d 2x: not a time"}, {"-d -1", 2, "-d -1: negative"}, {"-d 1e300", 2, "not a time"}, {"-d NaN", 2, "not a time"},
		{"report --version", 0, "tool "},
		{"report -V", 0, "tool "},
		{"-V", 0, "tool "},
		{"report -v", 0, ""},
	} {
		var out bytes.Buffer
		code := Run(program(&Streams{Out: &out, Err: &out}), strings.Fields(c.args), &out)
		if code != c.code || !strings.Contains(out.String(), c.says) || strings.Contains(out.String(), "strconv") {
			t.Errorf("%s: exit %d, want %d\n%s", c.args, code, c.code, out.String())
		}
	}
}

func TestEmptyValue(t *testing.T) {
	var out bytes.Buffer
	if code := Run(program(&Streams{Out: &out, Err: &out}), []string{"-c", ""}, &out); code != ExitUsage || !strings.Contains(out.String(), `-c "": not a number`) {
		t.Errorf("exit %d\n%s", code, out.String())
	}
}

func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{"2": 2 * time.Second, "0.25": 250 * time.Millisecond, "500ms": 500 * time.Millisecond, "1m30s": 90 * time.Second, "0": 0} {
		if got, err := ParseDuration(s); got != want || err != nil {
			t.Errorf("%s: %v %v, want %v", s, got, err, want)
		}
	}
}

func TestVersion(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26"}
	if got := version(info); got != "development version commit unknown go1.26" {
		t.Error(got)
	}
	info.Main.Version = "v1.2.0"
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	if got := version(info); got != "v1.2.0 commit 0123456789ab with changes go1.26" {
		t.Error(got)
	}
}
