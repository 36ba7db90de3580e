package cli

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// pager is the program that shows what a command writes to a terminal, page by page.
var pager struct {
	sync.Mutex
	in   *os.File // what the command writes to
	gone *os.File // ends when the pager has ended
}

// paged is the output of a command whose terminal belongs to a pager.
type paged struct {
	*os.File
	columns int
}

// pagedNotes is the standard error of a command with a pager. It is not a terminal, so that progress is not shown.
type pagedNotes struct {
	*os.File
	columns int
}

// Pager has the output of a command shown by the pager if it goes to a terminal: by $PAGER, or else by less. What ends by itself,
// and what is about files, is shown so; live views are not, nor are commands that are given --no-pager. Notes and errors follow
// the output, since they would be lost under it.
//
// It belongs in front of everything that asks whether the output is a terminal, and before the process confines itself: later it
// may start no program.
func Pager(cmd *cobra.Command, s *Streams) {
	columns, ok := Terminal(s.Out)
	if !ok || !pages(cmd) || os.Getenv("TERM") == "dumb" {
		return
	}
	program := []string{"less"}
	if p, set := os.LookupEnv("PAGER"); set {
		program = strings.Fields(p)
	}
	if len(program) == 0 || program[0] == "cat" {
		return
	}
	path, err := exec.LookPath(program[0])
	if err != nil {
		return
	}
	in, err := startPager(path, program[1:], s)
	if err != nil {
		return
	}
	s.Out = paged{in, columns}
	if _, tty := Terminal(s.Err); tty {
		s.Err = pagedNotes{in, columns}
		cmd.Root().SetErr(in)
	}
}

func startPager(path string, args []string, s *Streams) (*os.File, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	gone, held, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, err
	}
	defer held.Close()
	c := exec.Command(path, args...)
	c.Stdin, c.Stdout, c.Stderr = out, s.Out, s.Err
	c.ExtraFiles = []*os.File{held} // the other end tells when it has ended: a confined process cannot wait for another
	c.Env = os.Environ()
	if _, set := os.LookupEnv("LESS"); !set {
		c.Env = append(c.Env, "LESS=FRSX")
	}
	if err := c.Start(); err != nil {
		in.Close()
		gone.Close()
		return nil, err
	}
	pager.Lock()
	pager.in, pager.gone = in, gone
	pager.Unlock()
	return in, nil
}

// EndPager tells the pager that there is no more, and waits until the user has left it.
func EndPager() {
	pager.Lock()
	defer pager.Unlock()
	if pager.in == nil {
		return
	}
	pager.in.Close()
	_, _ = io.Copy(io.Discard, pager.gone)
	pager.in = nil
}

// pages reports whether the output of a command is shown page by page: it reads files, and not what is still being written.
func pages(cmd *cobra.Command) bool {
	f := cmd.Flags()
	if off, _ := f.GetBool("no-pager"); off || f.Lookup("read") == nil {
		return false
	}
	for _, live := range []string{"interface", "follow"} {
		if x := f.Lookup(live); x != nil && x.Changed {
			return false
		}
	}
	return true
}
