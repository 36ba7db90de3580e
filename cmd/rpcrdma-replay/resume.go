package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
)

// A file for --resume has a line with the authentication code of the rest, and the run.Snapshot in
// JSON. The guard believes the handles in it to be those of the directory of the replay, so only
// this user's own files are taken: the code is made with a key that never leaves the user's directory.

// maxResume is how many bytes such a file may have.
const maxResume = 2 << 30

// resumption is the flag --resume of a run.
type resumption struct {
	name  string
	files *outfile.Files
	s     *cli.Streams
	from  *run.Snapshot // nil: the run begins anew
}

// openResume reads the file of an interrupted run, if it is there.
func openResume(s *cli.Streams, files *outfile.Files, name string) (*resumption, error) {
	r := &resumption{name: name, files: files, s: s}
	b, err := readResume(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case err != nil:
		return nil, fmt.Errorf("--resume: %w", err)
	}
	key, err := cli.Secret("rpcrdma-replay", "resume.key")
	if err != nil {
		return nil, fmt.Errorf("--resume: %w", err)
	}
	code, text, found := bytes.Cut(b, []byte("\n"))
	if was, err := hex.DecodeString(string(code)); !found || err != nil || !hmac.Equal(was, sign(key, text)) {
		return nil, fmt.Errorf("--resume: %s was not written by an interrupted run of this user on this machine, or was changed", name)
	}
	r.from = &run.Snapshot{}
	if err := json.Unmarshal(text, r.from); err != nil {
		return nil, fmt.Errorf("--resume: %s: %w", name, err)
	}
	return r, nil
}

func readResume(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", name), err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxResume+1))
	if err == nil && len(b) > maxResume {
		err = fmt.Errorf("%s has more than %d MiB", name, maxResume>>20)
	}
	return b, err
}

// resumption is the flag --resume. It has a run begin where the interrupted one has ended, and leave a
// file if it ends early, too.
func (o *runFlags) resumption(s *cli.Streams, files *outfile.Files, opt *run.Options, builtin bool) (*resumption, error) {
	switch {
	case o.resume == "":
		return &resumption{}, nil
	case builtin:
		return nil, cli.Usagef("--resume needs a server that stays: the built-in one ends with this program; start one with the command serve")
	case o.prepareOnly:
		return nil, cli.Usagef("--prepare-only sends nothing that could be interrupted: leave out --resume")
	}
	r, err := openResume(s, files, o.resume)
	if err != nil {
		return nil, err
	}
	opt.Resume, opt.Keep = r.from, r.write
	return r, nil
}

// preview says where the run would begin.
func (r *resumption) preview(w io.Writer) error {
	if r.from == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nThe run goes on at call %d, where %s was written; %d calls are over. The counts above are for the whole plan.\n",
		r.from.First, filepath.Base(r.name), r.from.Done)
	return err
}

// write writes the file.
func (r *resumption) write(s *run.Snapshot) error {
	key, err := cli.Secret("rpcrdma-replay", "resume.key")
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := printable.Encoder(&text).Encode(s); err != nil {
		return err
	}
	f, err := r.files.Create(r.name)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := fmt.Fprintf(f, "%x\n", sign(key, text.Bytes())); err != nil {
		return err
	}
	if _, err := f.Write(text.Bytes()); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return err
	}
	cli.Tell(r.s.Err, "rpcrdma-replay", "the same command goes on where this run ended, as long as the server has not forgotten its clients")
	return nil
}

// observe removes the file as soon as a call is over: from then on it is not true any more, and a run
// that is killed leaves none.
func (r *resumption) observe(next func(*report.Outcome)) func(*report.Outcome) {
	if r.from == nil {
		return next
	}
	first := true
	return func(o *report.Outcome) {
		if first {
			first = false
			if err := os.Remove(r.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				cli.Tell(r.s.Err, "rpcrdma-replay", "note: %v; do not use this file again", err)
			}
		}
		if next != nil {
			next(o)
		}
	}
}

func sign(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}
