// Release builds everything that a release of the toolkit consists of, into a
// directory, and publishes nothing:
//
//	rpcrdma-toolkit_VERSION_OS_ARCH.tar.gz (.zip)  programs, manual pages, completions
//	rpcrdma-toolkit_VERSION_ARCH.deb, .rpm         the same, with systemd units
//	rpcrdma-toolkit_VERSION_ARCH.oci.tar           container image without a shell
//	rpcrdma-toolkit_VERSION_OS_ARCH.cdx.json       SBOM (CycloneDX 1.6)
//	SHA256SUMS
//
// It is a separate module, so that its dependencies are not those of the programs. Run it by its
// script:
//
//	release/run -o DIRECTORY
//
// Programs are static (CGO_ENABLED=0) and reproducible: the same commit and
// version of Go give the same bytes, wherever they are built. All dates are the commit's, or
// SOURCE_DATE_EPOCH.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// packageName names the packages, archives and images.
const packageName = "rpcrdma-toolkit"

// programs are the main packages below cmd.
var programs = []string{"rpcrdma-dump", "rpcrdma-top", "rpcrdma-replay", "rpcrdma-otlp", "rpcrdma-fleet"}

// nested are the programs that are modules of their own.
var nested = []string{"rpcrdma-otlp", "rpcrdma-fleet"}

// A platform is an operating system and a processor as Go calls them.
type platform struct{ os, arch string }

// platforms are all released platforms. Only Linux has live capture and RDMA; elsewhere the
// programs read captures, and replay over soft providers and TCP.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

func (p platform) String() string { return p.os + "/" + p.arch }

func (p platform) executable(program string) string {
	if p.os == "windows" {
		return program + ".exe"
	}
	return program
}

func main() {
	out := flag.String("o", "dist", "`directory` for the results; it must be absent or empty")
	which := flag.String("platforms", "", "build for these platforms only: `OS/ARCH,…`; the one of this machine is among them")
	root := flag.String("root", "..", "`directory` of the checkout")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "release: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*root, *out, *which); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// chosen parses the list of -platforms.
func chosen(list string) ([]platform, error) {
	if list == "" {
		return platforms, nil
	}
	var chosen []platform
	for s := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == s })
		if i < 0 {
			return nil, fmt.Errorf("unknown platform %q: there are %v", s, platforms)
		}
		chosen = append(chosen, platforms[i])
	}
	return chosen, nil
}

func run(root, out, which string) error {
	list, err := chosen(which)
	if err != nil {
		return err
	}
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty", out)
	}
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	b := &build{root: root, work: work, out: out}
	if b.when, b.version, err = commit(root); err != nil {
		return err
	}
	if err := sameTag(root, b.version); err != nil {
		return err
	}
	if b.root, err = recorded(root, work, b.version); err != nil {
		return err
	}
	fmt.Printf("%s %s of %s\n", packageName, b.version, b.when.Format("2006-01-02 15:04:05 UTC"))
	if err := b.extras(); err != nil {
		return err
	}
	for _, p := range list {
		if err := b.platform(p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return b.sums()
}

// platform makes all files of a platform.
func (b *build) platform(p platform) error {
	if err := b.compile(p); err != nil {
		return err
	}
	steps := []func(platform) error{b.archive, b.sbom}
	if p.os == "linux" {
		steps = append(steps, b.packages, b.image)
	}
	failed := make([]error, len(steps))
	var all sync.WaitGroup // each compresses the same programs
	for i, step := range steps {
		all.Go(func() { failed[i] = step(p) })
	}
	all.Wait()
	return errors.Join(failed...)
}
