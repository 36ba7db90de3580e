package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

const (
	nameAlone   = "zstdcat or pigz -dc"
	nameRecords = "records only"
)

// decompressors are the commands that decompress a file to standard output, by its first bytes.
var decompressors = []struct {
	magic string
	args  []string
}{
	{"\x28\xb5\x2f\xfd", []string{"zstdcat"}},
	{"\x1f\x8b", []string{"pigz", "-dc"}},
}

// alone is the command that decompresses a file and does nothing else.
func alone(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var head [4]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, d := range decompressors {
		if bytes.HasPrefix(head[:], []byte(d.magic)) {
			if _, err := exec.LookPath(d.args[0]); err != nil {
				return nil, err
			}
			return slices.Concat(d.args, []string{path}), nil
		}
	}
	return nil, fmt.Errorf("%s: not compressed with zstd or gzip", path)
}

// compressed are the programs that read compressed captures.
func compressed(o *options, dump, walk string, env []string) ([]*program, error) {
	commands := make(map[string][]string)
	for _, f := range o.files {
		args, err := alone(f)
		if err != nil {
			return nil, err
		}
		commands[f] = args
	}
	one := func(args ...string) func(*input) []string {
		return func(f *input) []string { return slices.Concat(args, []string{f.path}) }
	}
	return []*program{
		{name: nameAlone, args: func(f *input) []string { return commands[f.path] }, rounds: o.rounds},
		{name: nameRecords, args: one(walk, "-records"), env: env, rounds: o.rounds},
		{name: "rpcrdma-dump -q", args: one(dump, "-q"), env: env, rounds: o.rounds},
	}, nil
}

// decompressed writes the results for one capture. The ratio of each round is that of programs that ran one after
// another.
func decompressed(w io.Writer, in *input, programs []*program, runs map[string]map[*input][]sample) {
	fmt.Fprintf(w, "\n### %s\n\n%s packets, %.1f MB compressed\n\n", filepath.Base(in.path), thousands(in.packets), float64(in.bytes)/1e6)
	fmt.Fprintln(w, "| program | wall s | fastest | × alone, median of rounds | × alone, fastest | CPU s | × alone, least CPU | MiB resident |")
	fmt.Fprintln(w, "|-|-:|-:|-:|-:|-:|-:|-:|")
	wall := func(s sample) float64 { return s.wall.Seconds() }
	spent := func(s sample) float64 { return (s.user + s.sys).Seconds() }
	least := func(s []sample, of func(sample) float64) float64 {
		return of(slices.MinFunc(s, func(a, b sample) int { return cmp.Compare(of(a), of(b)) }))
	}
	base := runs[nameAlone][in]
	for _, p := range programs {
		s := runs[p.name][in]
		ratios := make([]float64, len(s))
		for i := range s {
			ratios[i] = wall(s[i]) / wall(base[i])
		}
		slices.Sort(ratios)
		fmt.Fprintf(w, "| %s | %.3f | %.3f | %.2f | %.2f | %.3f | %.2f | %.0f |\n", p.name, median(s, wall), least(s, wall),
			ratios[len(ratios)/2], least(s, wall)/least(base, wall), median(s, spent), least(s, spent)/least(base, spent),
			median(s, func(s sample) float64 { return float64(s.rss) / (1 << 20) }))
	}
}
