package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// roles are what the test program is when a test starts it as a child process, by the value of roleVariable.
var roles = map[string]func() int{
	"fleet": func() int { return run(os.Args[1:], cli.Standard()) },
}

const roleVariable = "RPCRDMA_FLEET_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		cli.Catch()
		os.Exit(role())
	}
	os.Exit(m.Run())
}

// TestMistake: a word that is no command is wrong usage, as in the other programs.
func TestMistake(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"reprot"}, &cli.Streams{Out: &out, Err: &errs}); code != cli.ExitUsage || !strings.Contains(errs.String(), `there is no command "reprot"; did you mean 'report'?`) {
		t.Errorf("exit status %d, %s", code, errs.String())
	}
}
