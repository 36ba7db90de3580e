// Command derive finds out which packets netem dropped, from the captures before and behind it and the counters
// of the kernels, and writes them as JSON. See README.md.
//
//	derive CAPTURE CLIENT-CAPTURE TRUTH-DIRECTORY
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/test/fabric"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: derive CAPTURE CLIENT-CAPTURE TRUTH-DIRECTORY")
		os.Exit(2)
	}
	t, err := derive(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, "derive:", err)
		os.Exit(1)
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "\t")
	if err := e.Encode(t); err != nil {
		fmt.Fprintln(os.Stderr, "derive:", err)
		os.Exit(1)
	}
}

// frame is a captured frame.
type frame struct {
	at     int64
	number uint64
	data   string
}

func load(file string) (list []frame, err error) {
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		var b capture.Batch
		err := r.Read(&b)
		for _, p := range b.Packets {
			list = append(list, frame{p.Time, p.Number, string(p.Data)})
		}
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, err
		}
	}
}

// from are the frames with that source address.
func from(list []frame, mac string) (out []frame) {
	for _, f := range list {
		if len(f.data) >= 14 && f.data[6:12] == mac {
			out = append(out, f)
		}
	}
	return out
}

// The addresses of the two hosts.
const (
	server = "\x52\x54\x00\x12\x34\x01"
	client = "\x52\x54\x00\x12\x34\x02"
)

func derive(main, far, dir string) (*fabric.Truth, error) {
	t := &fabric.Truth{Lost: []uint64{}, Server: map[string]int64{}, Client: map[string]int64{}}
	near, err := load(main)
	if err != nil {
		return nil, err
	}
	other, err := load(far)
	if err != nil {
		return nil, err
	}
	env, err := os.ReadFile(filepath.Join(dir, "scenario.env"))
	if err != nil {
		return nil, err
	}
	set := func(name string) (v string) {
		for _, m := range regexp.MustCompile(`(?m)(?:^| )`+name+`=('[^']*'|\S*)`).FindAllSubmatch(env, -1) {
			v = strings.Trim(string(m[1]), "'")
		}
		return v
	}
	t.Netem = set("NETEM_IN")
	t.Scenario = fmt.Sprintf("%s, %s", set("DRIVER"), set("KIND"))
	if t.Netem != "" {
		for _, host := range []string{"server", "client"} {
			post, err := load(filepath.Join(dir, "post."+host+".pcap"))
			if err != nil {
				return nil, err
			}
			pre, mac := from(near, client), client
			numbers := pre
			if host == "client" {
				// The link between the hosts loses nothing: the n-th frame that one sent is the n-th that the other saw.
				pre, mac = from(other, server), server
				numbers = from(near, server)
				at, ok := align(numbers, pre)
				if !ok {
					return nil, errors.New("the two captures do not have the same frames")
				}
				numbers = numbers[at:]
			}
			lost, doubled := behind(pre, from(post, mac))
			for _, i := range lost {
				if i >= len(numbers) {
					return nil, errors.New("a frame is in one capture only")
				}
				t.Lost = append(t.Lost, numbers[i].number)
			}
			for _, i := range doubled {
				t.Doubled = append(t.Doubled, numbers[i].number)
			}
			n, err := dropped(filepath.Join(dir, "net."+host+".after"))
			if err != nil {
				return nil, err
			}
			t.Dropped += n
		}
	}
	for host, list := range map[string]map[string]int64{"server": t.Server, "client": t.Client} {
		for sign, when := range map[int64]string{-1: "before", 1: "after"} {
			for _, kind := range []string{"rdma.", "net."} {
				if err := counters(filepath.Join(dir, kind+host+"."+when), sign, list); err != nil {
					return nil, err
				}
			}
		}
	}
	return t, nil
}

// align finds where in a the frames of b begin: the capture of the server starts earlier.
func align(a, b []frame) (at int, ok bool) {
	for at = range a {
		n := min(len(a)-at, len(b))
		same := n > 0
		for i := range n {
			if a[at+i].data != b[i].data {
				same = false
				break
			}
		}
		if same {
			return at, true
		}
	}
	return 0, len(b) == 0
}

// behind compares frames before netem with those behind it.
func behind(pre, post []frame) (lost, doubled []int) {
	index := make(map[string][]int)
	for i, f := range pre {
		index[f.data] = append(index[f.data], i)
	}
	came := make([]int, len(pre))
	for _, f := range post {
		// Of frames with the same bytes, it is the latest one that netem held then and that has
		// not arrived.
		best, again := -1, -1
		for _, i := range index[f.data] {
			if pre[i].at > f.at {
				break
			}
			if again = i; came[i] == 0 {
				best = i
			}
		}
		switch {
		case best >= 0:
			came[best]++
		case again >= 0:
			came[again]++
		}
	}
	// Before the second capture began, there was only ARP and ICMPv6.
	for i, n := range came {
		switch {
		case n == 0 && len(post) > 0 && (pre[i].at >= post[0].at || pre[i].data[12:14] == "\x08\x00"):
			lost = append(lost, i)
		case n > 1:
			doubled = append(doubled, i)
		}
	}
	return lost, doubled
}

var netemDrops = regexp.MustCompile(`(?s)qdisc netem.*?dropped (\d+)`)

func dropped(file string) (int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	m := netemDrops.FindSubmatch(b)
	if m == nil {
		return 0, fmt.Errorf("%s: no netem", file)
	}
	return strconv.Atoi(string(m[1]))
}

// wanted are the counters that are compared.
var wanted = map[string]bool{
	"out_of_seq_request": true, "duplicate_request": true, "rcvd_seq_err": true, "rcvd_pkts": true, "sent_pkts": true,
	"rcvd_rnr_err": true, "completer_retry_err": true, "retry_exceeded_err": true,
	"TcpRetransSegs": true, "TcpExtTCPFastRetrans": true, "TcpExtTCPTimeouts": true, "TcpExtTCPLossProbes": true,
	"TcpExtTCPSynRetrans": true, "TcpExtTCPSlowStartRetrans": true,
}

func counters(file string, sign int64, into map[string]int64) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < 2 || !wanted[f[0]] || seen[f[0]] {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			continue
		}
		if strings.HasPrefix(f[0], "Tcp") && strings.HasPrefix(filepath.Base(file), "rdma.") {
			continue // net.* has them, too
		}
		seen[f[0]] = true
		into[f[0]] += sign * n
	}
	return nil
}
