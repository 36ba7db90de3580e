package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// resumeOptions are the flags of commands that can go on where an earlier run stopped.
type resumeOptions struct {
	state string
	key   string
	end   bool
}

func (o *resumeOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.state, "resume-state", "", "go on where the last run with this `file` stopped, and keep in it what is known at the end: for rotated captures, in the order in which they were made")
	f.BoolVar(&o.end, "resume-end", false, "with --resume-state: this is the last input; show what is still open, and remove the file")
	f.StringVar(&o.key, "resume-key", "", "with --resume-state: sign it with what is in this `file`, and refuse one that is not")
}

// check refuses what does not go with it. others are flags that the user has set and that do not.
func (o *resumeOptions) check(in *inputOptions, others ...string) error {
	switch {
	case o.state == "" && (o.end || o.key != ""):
		return cli.Usagef("--resume-end and --resume-key go with --resume-state")
	case o.state == "":
		return nil
	case o.state == "-":
		return cli.Usagef("--resume-state is a file")
	case len(in.ifaces) > 0 || in.follow:
		return cli.Usagef("--resume-state is for files that are complete, not for -i and --follow")
	case in.span.Given():
		return cli.Usagef("--resume-state is for whole files: --since, --until and --last do not go with it")
	case in.trackers > 0:
		return cli.Usagef("--trackers does not go with --resume-state: one tracker is saved")
	}
	for _, name := range others {
		return cli.Usagef("%s does not go with --resume-state", name)
	}
	return nil
}

// resume is a run that goes on where another one stopped.
type resume struct {
	*resumeOptions
	keep   decode.StateOptions
	loaded []byte // nil: this is the first run
	info   fs.FileInfo

	// What the state says about the runs before.
	packets    uint64
	last       int64 // time of the newest packet
	files      []decode.StateNote
	before     decode.Stats
	orphansWas transaction.Stats
}

// Notes in a state. Those of files hold the time of the first packet.
const (
	notePackets = "packets"
	noteLast    = "last"
	noteFile    = "file "
)

const (
	minResumeKey = 16
	maxResumeKey = 64 << 10
	// outOfOrder is how far back in time a file may begin: captures are not sorted to the nanosecond.
	outOfOrder = int64(time.Second)
)

// open reads the state, if there is one.
func (o *resumeOptions) open(s *cli.Streams, in *inputOptions, args []string) (*resume, error) {
	if o.state == "" {
		return nil, nil
	}
	files, err := in.claim(s, args, o.key)
	if err == nil {
		err = files.Check(o.state)
	}
	if err != nil {
		return nil, err
	}
	r := &resume{resumeOptions: o}
	if o.key != "" {
		key, _, err := readSmall(o.key, maxResumeKey)
		if err != nil {
			return nil, fmt.Errorf("--resume-key: %w", err)
		}
		if len(key) < minResumeKey {
			return nil, cli.Usagef("--resume-key: %s has %d bytes: a key has at least %d", o.key, len(key), minResumeKey)
		}
		r.keep.Key = key
	}
	state, info, err := readSmall(o.state, math.MaxInt)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case err != nil:
		return nil, err
	}
	if o.key == "" {
		if err := ownFile(info); err != nil {
			return nil, fmt.Errorf("%s: %w", o.state, err)
		}
	}
	notes, err := decode.StateNotes(state, r.keep)
	if err != nil {
		return nil, o.explain(err)
	}
	r.loaded, r.info = state, info
	for _, n := range notes {
		switch {
		case n.Name == notePackets:
			r.packets, err = strconv.ParseUint(n.Value, 10, 63)
		case n.Name == noteLast:
			r.last, err = strconv.ParseInt(n.Value, 10, 64)
		default:
			r.files = append(r.files, n)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.state, err)
		}
	}
	in.first = r.packets
	return r, nil
}

// readSmall reads a regular file of at most the given number of bytes.
func readSmall(name string, most int) ([]byte, fs.FileInfo, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > int64(most):
		return nil, nil, fmt.Errorf("%s has %d bytes, more than %d", name, info.Size(), most)
	}
	b, err := io.ReadAll(io.LimitReader(f, info.Size()))
	return b, info, err
}

// explain says what to do about a state that cannot be used.
func (o *resumeOptions) explain(err error) error {
	what := ""
	switch {
	case errors.Is(err, decode.ErrStateVersion):
		what = ": remove it, and decode the series from its first file"
	case errors.Is(err, decode.ErrStateSettings):
		what = ": give the same options in each run, or remove it and decode the series from its first file"
	case errors.Is(err, decode.ErrStateDamaged):
		what = ": restore it from a copy, or remove it and decode the series from its first file"
	case errors.Is(err, decode.ErrStateKey), errors.Is(err, decode.ErrStateNoKey):
		what = ": see --resume-key"
	case errors.Is(err, decode.ErrStateLimit):
		what = ": see --limit-memory"
	}
	return fmt.Errorf("%s: %w%s", o.state, err, what)
}

// begin restores the state in the decoder of a job. what names the kind of output, which has to stay the same.
func (r *resume) begin(j *job, what string, parts []decode.StatePart) error {
	if r == nil {
		return nil
	}
	j.resume = r
	if j.keys.Keytab() {
		return cli.Usagef("--resume-state does not go with a keytab (--keytab, KRB5_KTNAME): session keys are not written to a file")
	}
	if j.in.scrubbed != nil {
		return cli.Usagef("--resume-state does not go with --scrub: packets that wait are not written to a file")
	}
	if err := j.files.Check(r.state); err != nil {
		return err
	}
	r.keep.Parts = parts
	r.keep.Settings = []decode.StateNote{{Name: "output", Value: what}}
	now, err := r.starts(j)
	if err != nil {
		return err
	}
	if r.loaded == nil {
		r.files = now
		return nil
	}
	if _, err := j.d.LoadState(r.loaded, r.keep); err != nil {
		return r.explain(err)
	}
	r.loaded, r.files = nil, now
	r.before, r.orphansWas = j.d.Stats(), j.d.Orphans()
	return nil
}

// resumed reports whether there was a run before this one.
func (r *resume) resumed() bool { return r != nil && r.info != nil }

// starts looks when the inputs begin, and refuses one that the state has seen.
func (r *resume) starts(j *job) (list []decode.StateNote, err error) {
	for _, name := range j.in.names {
		if name == "-" {
			continue
		}
		at, ok := firstTime(name)
		if !ok {
			continue
		}
		x := decode.StateNote{Name: noteFile + filepath.Base(name), Value: strconv.FormatInt(at, 10)}
		if slices.Contains(r.files, x) {
			return nil, cli.Usagef("%s has been decoded already: %s holds what was known after it", name, r.state)
		}
		if r.resumed() && at < r.last-outOfOrder {
			j.notes.Printf("note: %s begins %v before the end of the captures before it: were they given in the order of time?",
				name, time.Duration(r.last-at).Round(time.Millisecond))
		}
		list = append(list, x)
	}
	return list, nil
}

// firstTime is when the first packet of a regular file was captured.
func firstTime(name string) (at int64, ok bool) {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	r, err := capture.Open([]string{name}, capture.Options{BatchSize: 4 << 10})
	if err != nil {
		return 0, false
	}
	defer r.Close()
	var b capture.Batch
	if r.Read(&b) != nil {
		return 0, false
	}
	return b.Packets[0].Time, true
}

// decode runs the decoder over the input.
func (r *resume) decode(j *job) error {
	if r == nil || r.end {
		return j.d.Run(j.in)
	}
	return j.d.Feed(j.in)
}

// save writes the state, once all output is written. It replaces the old one whole or not at all.
func (r *resume) save(j *job) error {
	if r == nil {
		return nil
	}
	if err := j.whole(r.state); err != nil {
		return err
	}
	if r.end {
		return r.remove(j)
	}
	st := j.d.Stats()
	r.keep.Notes = append(r.files[:len(r.files):len(r.files)],
		decode.StateNote{Name: notePackets, Value: strconv.FormatUint(st.Packets, 10)},
		decode.StateNote{Name: noteLast, Value: strconv.FormatInt(max(st.Last.Time, r.last), 10)})
	f, err := j.files.Create(r.state)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := j.d.SaveState(f, r.keep); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return err
	}
	if n := j.d.OpenCount(); n > 0 {
		j.notes.Printf("%s still open, kept in %s: the next file may have the rest", units.Plural(n, "transaction"), r.state)
	}
	return nil
}

// remove removes the state that was read, unless something else has its name now.
func (r *resume) remove(j *job) error {
	if !r.resumed() {
		return nil
	}
	now, err := os.Lstat(r.state)
	switch {
	case err != nil:
		return err
	case !os.SameFile(now, r.info):
		j.notes.Printf("note: %s is a link, or was replaced after it was read: it is not removed", r.state)
		return nil
	}
	return os.Remove(r.state)
}

// since takes off what the runs before have counted.
func (r *resume) since(st decode.Stats) decode.Stats {
	if r != nil {
		o := &r.before
		st.Packets -= o.Packets
		st.Undecodable -= o.Undecodable
		st.CutShort -= o.CutShort
		st.CutBefore -= o.CutBefore
		st.NotSplit -= o.NotSplit
		st.BadICRC -= o.BadICRC
		st.GoodICRC -= o.GoodICRC
		st.EvictedConnections -= o.EvictedConnections
		st.EvictedDatagrams -= o.EvictedDatagrams
		st.IncompleteDatagrams -= o.IncompleteDatagrams
		st.OddFragments -= o.OddFragments
		st.BadCRC -= o.BadCRC
		st.Misframed = st.Misframed.Since(o.Misframed)
		st.Differing = st.Differing.Since(o.Differing)
		st.Displaced = st.Displaced.Since(o.Displaced)
		st.Mismarked = st.Mismarked.Since(o.Mismarked)
		st.Sealed, st.TLSRefused = st.Sealed.Since(o.Sealed), st.TLSRefused.Since(o.TLSRefused)
		st.Rejected = st.Rejected.Since(o.Rejected)
		st.Refused = st.Refused.Since(o.Refused)
		st.Unanswered, st.Asked = st.Unanswered.Since(o.Unanswered), st.Asked.Since(o.Asked)
		st.Sampled = st.Sampled.Since(&o.Sampled)
		st.OneWay = st.OneWay.Since(o.OneWay)
		st.Sequences = st.Sequences.Since(o.Sequences)
		st.Backwards = st.Backwards.Since(o.Backwards)
	}
	return st
}

// orphans takes off what the runs before have counted of what this run reports.
func (r *resume) orphans(st transaction.Stats) transaction.Stats {
	if r != nil {
		st.Evicted -= r.orphansWas.Evicted
		st.Malformed = st.Malformed.Since(&r.orphansWas.Malformed)
	}
	return st
}
