// Pointing, hiding and sorting. The page is whole without any of it.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const tip = document.getElementById("tip");
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  const say = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = !text;
    if (!text) return;
    const box = tip.getBoundingClientRect();
    const left = x + 14 + box.width > innerWidth ? x - box.width - 14 : x + 14;
    const top = y + 14 + box.height > innerHeight ? y - box.height - 14 : y + 14;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, top) + "px";
  };
  // Scrolling away closes what a pointer opened; reaching something by keyboard scrolls by itself.
  let byKey = false;
  addEventListener("scroll", () => { if (!byKey) say(""); }, { passive: true });

  // One point stands out in all charts, legends and tables.
  const single = !document.querySelector("table.sortable");
  let near = null;
  const point = (index) => {
    if (single || index === near) return;
    near = index;
    for (const e of all(".chart [data-p]")) e.classList.toggle("far", index !== null && e.dataset.p !== index);
    for (const e of all("tbody[data-p]")) e.classList.toggle("near", e.dataset.p === index);
    for (const e of all("[data-toggle]")) e.parentNode.classList.toggle("near", e.dataset.toggle === index);
  };
  for (const e of all("tbody[data-p]")) {
    e.addEventListener("pointerenter", () => point(e.dataset.p));
    e.addEventListener("pointerleave", () => point(null));
  }

  // Legends hide and show what they name.
  for (const button of all("[data-toggle]")) {
    const index = button.dataset.toggle;
    button.addEventListener("pointerenter", () => point(index));
    button.addEventListener("pointerleave", () => point(null));
    button.addEventListener("focus", () => point(index));
    button.addEventListener("blur", () => point(null));
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      for (const b of all(`[data-toggle="${index}"]`)) b.setAttribute("aria-pressed", shown);
      for (const e of all(`.chart [data-p="${index}"]`)) e.style.display = shown ? "" : "none";
    });
  }

  // What carries its own text shows it when pointed at or reached by keyboard.
  for (const e of all("[data-tip]")) {
    const box = () => e.getBoundingClientRect();
    e.addEventListener("pointermove", (at) => { byKey = false; say(e.dataset.tip, at.clientX, at.clientY); point(e.dataset.p ?? null); at.stopPropagation(); });
    e.addEventListener("pointerleave", () => { say(""); point(null); });
    e.addEventListener("focus", () => { byKey = true; say(e.dataset.tip, box().right, box().bottom); point(e.dataset.p ?? null); });
    e.addEventListener("blur", () => { say(""); point(null); });
  }

  // What stands for a point without a text of its own shows the one it has elsewhere.
  const told = (index) => document.querySelector(`.spot[data-p="${index}"][data-tip]`)?.dataset.tip ?? "";
  for (const e of all(".cell[data-p], .dots[data-p], .spot[data-p]:not([data-tip])")) {
    e.addEventListener("pointermove", (at) => { byKey = false; say(told(e.dataset.p), at.clientX, at.clientY); point(e.dataset.p); });
    e.addEventListener("pointerleave", () => { say(""); point(null); });
    e.addEventListener("focus", () => { byKey = true; const box = e.getBoundingClientRect(); say(told(e.dataset.p), box.right, box.bottom); point(e.dataset.p); });
    e.addEventListener("blur", () => { say(""); point(null); });
  }

  // An axis as written in data-x and data-y: scale, values at the ends, places of the ends.
  const axis = (text) => {
    const [kind, ...numbers] = text.split(" ");
    const [lo, hi, from, to] = numbers.map(Number);
    return (at) => {
      const share = (at - from) / (to - from);
      return kind === "log" ? lo * Math.pow(hi / lo, share) : lo + (hi - lo) * share;
    };
  };
  const duration = (ns) => {
    for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]])
      if (Math.abs(ns) >= size) return Number((ns / size).toPrecision(3)) + " " + unit;
    return Math.round(ns) + " ns";
  };
  const percentile = (nines) => {
    const percent = 100 * (1 - Math.pow(10, -nines));
    return "p" + percent.toFixed(Math.max(0, Math.min(4, Math.ceil(nines) - 1)));
  };
  // Where in the picture's own units the pointer is.
  const place = (svg, at) => new DOMPoint(at.clientX, at.clientY).matrixTransform(svg.getScreenCTM().inverse());

  // Percentile curves: the nearest curve at the pointer's percentile.
  const corners = (path) => {
    const line = [];
    let x = 0, y = 0;
    for (const [, kind, rest] of path.getAttribute("d").matchAll(/([Ml])([^Mlh]*)/g)) {
      const n = rest.match(/-?[\d.]+/g).map(Number);
      for (let i = 0; i + 1 < n.length; i += 2) {
        [x, y] = kind === "M" ? [n[i], n[i + 1]] : [x + n[i], y + n[i + 1]];
        line.push([x, y]);
      }
    }
    return line;
  };
  const heightAt = (line, x) => {
    for (let i = 1; i < line.length; i++) {
      const [x0, y0] = line[i - 1], [x1, y1] = line[i];
      if (x >= x0 && x <= x1) return y0 + (y1 - y0) * (x1 > x0 ? (x - x0) / (x1 - x0) : 0);
    }
    return NaN;
  };
  for (const svg of all("svg.percentiles")) {
    const across = axis(svg.dataset.x), up = axis(svg.dataset.y);
    const curves = all("g[data-p]", svg).map((g) => ({ g, line: corners(g.querySelector(".line")) }));
    svg.addEventListener("pointermove", (event) => {
      const at = place(svg, event);
      let best = null, height = 0, gap = 40;
      for (const c of curves) {
        if (c.g.style.display === "none") continue;
        const y = heightAt(c.line, at.x);
        if (Math.abs(y - at.y) < gap) { gap = Math.abs(y - at.y); best = c; height = y; }
      }
      point(best && best.g.dataset.p);
      say(best ? `${best.g.dataset.name}\n${percentile(across(at.x))}  ${duration(up(height))}` : "", event.clientX, event.clientY);
    });
    svg.addEventListener("pointerleave", () => { say(""); point(null); });
  }

  // Heat maps: the cell of the table below that belongs to the pointer's time and latency. The narrow
  // picture may have other steps than the table, which is that of the wide one.
  for (const figure of all("figure.heat-map")) {
    const head = all("thead th", figure).map((e) => e.textContent);
    const rows = all("tbody tr", figure).map((tr) => [...tr.cells].map((td) => td.textContent.trim()));
    const svg = figure.querySelector("svg.heat:not(.narrow)");
    if (!svg || !rows.length) continue;
    const across = axis(svg.dataset.x), [, , , low, high] = svg.dataset.y.split(" ").map(Number);
    svg.addEventListener("pointermove", (event) => {
      const at = place(svg, event), seconds = across(at.x);
      let row = null;
      for (const r of rows) if (+r[0] <= seconds) row = r;
      const band = Math.floor((low - at.y) / (low - high) * (head.length - 1));
      const mark = event.target.closest(".event");
      let text = row && head[band + 1] ? `${row[0]} s\n${head[band + 1]}  ${row[band + 1] || 0}` : "";
      if (mark) text += "\n" + mark.dataset.text;
      say(text.trim(), event.clientX, event.clientY);
    });
    svg.addEventListener("pointerleave", () => say(""));
  }

  // Timelines: the row of the table below that belongs to the pointer's time.
  for (const figure of all("figure.over-time")) {
    const head = all("thead th", figure).map((e) => e.textContent);
    const rows = all("tbody tr", figure).map((tr) => [...tr.cells].map((td) => td.textContent.trim()));
    for (const svg of all("svg.timeline", figure)) {
      const across = axis(svg.dataset.x), cursor = svg.querySelector(".cursor");
      svg.addEventListener("pointermove", (event) => {
        const at = place(svg, event), seconds = across(at.x);
        let row = null;
        for (const r of rows) if (+r[0] <= seconds) row = r;
        cursor.setAttribute("x1", at.x);
        cursor.setAttribute("x2", at.x);
        cursor.classList.toggle("on", row !== null);
        const mark = event.target.closest(".event");
        const lines = row ? row.map((text, i) => (i ? `${head[i]}  ${text}` : `${text} s`)) : [];
        say((mark ? [...lines, mark.dataset.text] : lines).join("\n"), event.clientX, event.clientY);
      });
      svg.addEventListener("pointerleave", () => { say(""); cursor.classList.remove("on"); });
    }
  }

  // On paper nothing can be opened: what is closed opens for it, and closes afterwards. Tables of numbers stay
  // as they are, for there are thousands of rows of them.
  const opened = [];
  addEventListener("beforeprint", () => {
    opened.push(...all("details:not(.numbers):not([open])"));
    for (const e of opened) e.open = true;
  });
  addEventListener("afterprint", () => {
    for (const e of opened.splice(0)) e.open = false;
  });

  // Tables sort by the column whose heading is pressed; a second press turns the order round.
  for (const table of all("table.sortable")) {
    const heads = all("thead th", table);
    heads.forEach((th, column) => th.querySelector("button").addEventListener("click", () => {
      const down = th.getAttribute("aria-sort") === "ascending";
      for (const h of heads) h.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (body) => body.rows[0].cells[column].dataset.v;
      const order = (a, b) => {
        const x = value(a), y = value(b);
        if (x === "" || y === "") return (x === "") - (y === "");
        const gap = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
        return down ? -gap : gap;
      };
      for (const body of [...table.tBodies].sort(order)) table.append(body);
    }));
  }
})();
