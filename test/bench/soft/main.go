// Soft measures the soft providers and the whole NFS server over them as ratios: each is compared with bare sockets, or
// with NFS over TCP, that ran in the same round, so that other load on the machine affects both.
//
//	go run ./test/bench/soft -n 7
//
// It builds the benchmarks of the providers and rpcrdma-replay from this tree, unless -bin names a directory that has
// them: iwarp.test and rocev2.test (go test -c) and rpcrdma-replay. -save FILE keeps the results of all rounds in a
// file, adds those of the next run to them, and makes the table of all: a long measurement in several short ones.
// "speed" is the rate relative to that of
// the bare socket (of TCP for the server), "CPU" the processor time of both ends for the same bytes or calls, relative to
// that of the bare socket; each the median of the rounds, with the lowest and the highest in parentheses.
package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 5, "rounds")
	each := flag.Duration("time", 300*time.Millisecond, "how long each measurement takes")
	bin := flag.String("bin", "", "directory with the built programs; empty builds them")
	save := flag.String("save", "", "file that keeps the rounds of several runs")
	flag.Parse()
	if flag.NArg() > 0 || *n < 1 || *each <= 0 {
		fmt.Fprintln(os.Stderr, "usage: soft [-n ROUNDS] [-time DURATION], in the root of the repository")
		os.Exit(2)
	}
	if err := run(*n, *each, *bin, *save); err != nil {
		fmt.Fprintln(os.Stderr, "soft:", err)
		os.Exit(1)
	}
}

// cost is what an operation takes.
type cost struct{ Wall, CPU float64 }

// comparison is one row of the table.
type comparison struct {
	title, what, base string
	goal              string
}

var comparisons = []comparison{
	{"RDMA Read of 1 MiB, soft iWARP / TCP", "iwarp/Read1M", "iwarp/Stream1M/bare", ""},
	{"RDMA Write of 1 MiB, soft iWARP / TCP", "iwarp/Write1M", "iwarp/Stream1M/bare", "1.0"},
	{"64 bytes and back, 32 in flight, soft iWARP / TCP", "iwarp/RPC64x32", "iwarp/RPC64x32/bare", "0.35"},
	{"64 bytes and back, one in flight, soft iWARP / TCP", "iwarp/PingPong64", "iwarp/PingPong64/bare", ""},
	{"RDMA Read of 1 MiB, soft RoCEv2 / UDP with GSO", "rocev2/Read1M", "rocev2/Stream1M/bare", ""},
	{"RDMA Write of 1 MiB, soft RoCEv2 / UDP with GSO", "rocev2/Write1M", "rocev2/Stream1M/bare", "0.9"},
	{"64 bytes and back, 32 in flight, soft RoCEv2 / UDP", "rocev2/RPC64x32", "rocev2/RPC64x32/bare", ""},
	{"64 bytes and back, one in flight, soft RoCEv2 / UDP", "rocev2/PingPong64", "rocev2/PingPong64/bare", ""},
	{"NFS server, READ of 1 MiB, 8 in flight, iWARP / TCP", "read/iwarp", "read/tcp", "1.0"},
	{"NFS server, WRITE of 1 MiB, 8 in flight, iWARP / TCP", "write/iwarp", "write/tcp", "0.8"},
	{"NFS server, READ of 1 MiB, 8 in flight, RoCEv2 / TCP", "read/rocev2", "read/tcp", "0.8"},
	{"NFS server, WRITE of 1 MiB, 8 in flight, RoCEv2 / TCP", "write/rocev2", "write/tcp", "0.8"},
}

// providers are packages below replay/verbs.
var providers = []string{"iwarp", "rocev2"}

func run(rounds int, each time.Duration, bin, save string) error {
	if bin == "" {
		tmp, err := os.MkdirTemp("", "rpcrdma-soft")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		if err := build(tmp); err != nil {
			return err
		}
		bin = tmp
	}
	all := make(map[string][]cost) // by name; one of each round
	if err := load(save, all); err != nil {
		return err
	}
	for range rounds {
		round := make(map[string][]cost)
		for _, p := range providers {
			out, err := output(filepath.Join(bin, p+".test"), "-test.run", "^$", "-test.benchtime", each.String(),
				"-test.bench", "^Benchmark(Provider|Verbs)$/^(Read1M|Write1M|Stream1M|PingPong64|RPC64x32)$")
			if err != nil {
				return err
			}
			if err := benchmarks(round, p, out); err != nil {
				return err
			}
		}
		out, err := output(filepath.Join(bin, "rpcrdma-replay"), "bench", "--job", "read,write", "--provider", "tcp,iwarp,rocev2", "--size", "1M", "--outstanding", "8", "--time", each.String(), "-T", "csv")
		if err != nil {
			return err
		}
		if err := server(round, out); err != nil {
			return err
		}
		for name, c := range round {
			all[name] = append(all[name], c...)
		}
		if err := store(save, all); err != nil {
			return err
		}
	}
	return table(os.Stdout, all)
}

// build makes the programs in a directory.
func build(dir string) error {
	for _, p := range providers {
		if _, err := output("go", "test", "-c", "-o", filepath.Join(dir, p+".test"), "./replay/verbs/"+p); err != nil {
			return err
		}
	}
	_, err := output("go", "build", "-o", dir+"/", "./cmd/rpcrdma-replay")
	return err
}

// load adds the rounds that a file keeps, if there is one.
func load(file string, all map[string][]cost) error {
	if file == "" {
		return nil
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		return fmt.Errorf("-save %s: %w", file, err)
	}
	return nil
}

// store keeps the rounds in a file.
func store(file string, all map[string][]cost) error {
	if file == "" {
		return nil
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// output is what a command writes to standard output.
func output(name string, args ...string) ([]byte, error) {
	var diagnosis bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &diagnosis
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s%s", strings.Join(cmd.Args, " "), err, out, &diagnosis)
	}
	return out, nil
}

var resultLine = regexp.MustCompile(`(?m)^Benchmark\w+/(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// benchmarks adds what the benchmarks of a provider print.
func benchmarks(all map[string][]cost, provider string, out []byte) error {
	for _, m := range resultLine.FindAllSubmatch(out, -1) {
		var c cost
		f := strings.Fields(string(m[2]))
		for i := 0; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return fmt.Errorf("%s: %w", m[0], err)
			}
			switch f[i+1] {
			case "ns/op":
				c.Wall = v
			case "cpu-ns/op":
				c.CPU = v
			}
		}
		name := provider + "/" + string(m[1])
		all[name] = append(all[name], c)
	}
	return nil
}

// server adds what rpcrdma-replay bench prints.
func server(all map[string][]cost, out []byte) error {
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(rows) < 2 {
		return errors.Join(err, errors.New("rpcrdma-replay bench: no results"))
	}
	column := func(name string) int { return slices.Index(rows[0], name) }
	job, fabric := column("job"), column("fabric")
	rate, client, server := column("bytes_per_second"), column("client_cpu_ns_per_byte"), column("server_cpu_ns_per_byte")
	failed := column("error")
	if min(job, fabric, rate, client, server, failed) < 0 {
		return fmt.Errorf("rpcrdma-replay bench has other columns: %s", rows[0])
	}
	for _, r := range rows[1:] {
		if r[failed] != "" {
			return fmt.Errorf("rpcrdma-replay bench: %s over %s: %s", r[job], r[fabric], r[failed])
		}
		var v [3]float64
		for i, c := range []int{rate, client, server} {
			if v[i], err = strconv.ParseFloat(r[c], 64); err != nil {
				return err
			}
		}
		name := r[job] + "/" + r[fabric]
		all[name] = append(all[name], cost{1 / v[0], v[1] + v[2]})
	}
	return nil
}

// table compares the rounds.
func table(w io.Writer, all map[string][]cost) error {
	rounds := len(all[comparisons[0].base])
	fmt.Fprintf(w, "%d rounds\n\n| | goal | speed | CPU |\n|-|-:|-:|-:|\n", rounds)
	for _, c := range comparisons {
		what, base := all[c.what], all[c.base]
		if len(what) != rounds || len(base) != rounds {
			return fmt.Errorf("%d results for %s and %d for %s in %d rounds", len(what), c.what, len(base), c.base, rounds)
		}
		var speed, cpu []float64
		for i := range what {
			speed = append(speed, base[i].Wall/what[i].Wall)
			cpu = append(cpu, what[i].CPU/base[i].CPU)
		}
		goal := c.goal
		if goal == "" {
			goal = "–"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", c.title, goal, spread(speed), spread(cpu))
	}
	return nil
}

// spread is the median of values with the least and the greatest.
func spread(v []float64) string {
	slices.Sort(v)
	median := v[len(v)/2]
	if len(v)%2 == 0 {
		median = (median + v[len(v)/2-1]) / 2
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median, v[0], v[len(v)-1])
}
