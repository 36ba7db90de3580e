package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// remote has DuckDB read s3:// with its extension httpfs. It returns the results as DuckDB names them. Keys, region and
// endpoint come from where the fleet has them: variables of the environment and options of the URL.
func (d *db) remote(ctx context.Context, httpfs, results string) (string, error) {
	u, err := url.Parse(results)
	if err != nil {
		return "", err
	}
	load := "load " + quote(httpfs)
	if httpfs == "install" {
		load = "install httpfs; load httpfs"
	}
	if _, err := d.ExecContext(ctx, load); err != nil {
		return "", fmt.Errorf("httpfs: %w", err)
	}
	secret := fmt.Sprintf("create secret (type s3, key_id %s, secret %s, region %s", quote(os.Getenv("AWS_ACCESS_KEY_ID")),
		quote(os.Getenv("AWS_SECRET_ACCESS_KEY")), quote(cmp.Or(u.Query().Get("region"), os.Getenv("AWS_REGION"), "us-east-1")))
	if token := os.Getenv("AWS_SESSION_TOKEN"); token != "" {
		secret += ", session_token " + quote(token)
	}
	if s := cmp.Or(u.Query().Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL")); s != "" {
		e, err := url.Parse(s)
		if err != nil || e.Host == "" {
			return "", errors.New("the endpoint is not like https://store:7070")
		}
		secret += fmt.Sprintf(", endpoint %s, use_ssl %t, url_style 'path'", quote(e.Host), e.Scheme == "https")
	}
	if _, err := d.ExecContext(ctx, secret+")"); err != nil {
		return "", errors.New("httpfs: DuckDB does not take the credentials") // its message may hold them
	}
	return "s3://" + u.Host + u.Path, nil
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// pattern is what a query reads.
var pattern = regexp.MustCompile(`'results/([^']*)'`)

// fetch copies the objects that the queries read into a folder.
func fetch(ctx context.Context, queries []string, results, dir string) (n int, err error) {
	u, err := url.Parse(results)
	if err != nil {
		return 0, err
	}
	in := store.NewInputs(store.Options{Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }})
	defer in.Close()
	base, seen := strings.TrimSuffix(u.Path, "/")+"/", make(map[string]bool)
	for _, m := range pattern.FindAllStringSubmatch(strings.Join(queries, "\n"), -1) {
		if seen[m[1]] {
			continue
		}
		seen[m[1]] = true
		what := *u
		what.Path = base + m[1]
		list, err := in.Find(ctx, what.String())
		if err != nil {
			return n, err
		}
		for _, f := range list {
			o, err := url.Parse(f.URL)
			if err != nil {
				return n, err
			}
			name := filepath.FromSlash(strings.TrimPrefix(o.Path, base))
			if !filepath.IsLocal(name) {
				return n, fmt.Errorf("%q leads out of the folder", name)
			}
			if err := save(ctx, in, f.File, filepath.Join(dir, name)); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

func save(ctx context.Context, in *store.Inputs, f layout.File, name string) error {
	r, err := in.Open(ctx, f, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	w, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
