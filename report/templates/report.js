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
      for (const svg of charts) oneStop(svg);
    });
  }

  // What stands for a point without a text of its own shows the one it has elsewhere: at its marker, in the
  // table of points, or in that of the runs.
  const tips = new Map(all(".frontier .spot[data-tip]").map((e) => [e.dataset.p, e.dataset.tip]));
  const told = (e) => {
    const index = e.dataset.p, text = e.dataset.tip ?? tips.get(index);
    if (text) return text;
    const point = document.querySelector(`tbody[data-p="${index}"]`);
    if (point) return all("th, td b, li", point).map((e) => e.textContent.trim()).join("\n");
    const rows = all(".numbers tbody tr", e.closest("figure")).slice(0, 12).map((tr) => [...tr.cells].map((td) => td.textContent.trim()));
    return rows.map((cells) => `run ${cells[1]}  ${cells[2]} msg/s  p99 ${cells[4]}`).join("\n");
  };
  const spoken = (text) => text.replaceAll("\n", ", ");

  // Marks show their text when pointed at or reached by keyboard.
  const marks = ".spot, .cell, .dots";
  for (const e of all(marks)) {
    const text = told(e), index = e.dataset.p ?? null;
    const leave = () => { say(""); point(null); };
    e.addEventListener("pointermove", (at) => { byKey = false; say(text, at.clientX, at.clientY); point(index); at.stopPropagation(); });
    e.addEventListener("pointerleave", leave);
    e.addEventListener("focus", () => { byKey = true; const box = e.getBoundingClientRect(); say(text, box.right, box.bottom); point(index); oneStop(e.closest("svg"), e); });
    e.addEventListener("blur", leave);
    e.setAttribute("role", "img");
    if (!e.hasAttribute("aria-label")) e.setAttribute("aria-label", spoken(text));
  }

  // A chart is one stop of the Tab key, however many marks it has. Arrows go from mark to mark: through
  // all of them, and across in a chart of columns. Home and End go to the first and the last.
  const columnOf = (cell) => cell.querySelector("rect").getAttribute("x");
  const following = (list, mark, key) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[key], level = key === "ArrowLeft" || key === "ArrowRight";
    if (key === "Home") return list[0];
    if (key === "End") return list.at(-1);
    if (mark.matches(".cell") && !level) list = list.filter((e) => columnOf(e) === columnOf(mark));
    if (mark.matches(".dots") && level) list = list.filter((e) => e.dataset.p === mark.dataset.p);
    return step && list[list.indexOf(mark) + step];
  };
  const charts = all("svg.chart").filter((svg) => svg.querySelector(marks));
  const reachable = (svg) => all(marks, svg).filter((e) => e.style.display !== "none" && e.firstElementChild);
  const oneStop = (svg, stop) => {
    stop ??= reachable(svg).find((e) => e.tabIndex === 0) ?? reachable(svg)[0];
    for (const e of all(marks, svg)) e.setAttribute("tabindex", e === stop ? 0 : -1);
  };
  for (const svg of charts) {
    svg.setAttribute("role", "group");
    oneStop(svg);
    svg.addEventListener("keydown", (event) => {
      const mark = event.target.closest(marks);
      const to = mark && !event.ctrlKey && !event.altKey && !event.metaKey && following(reachable(svg), mark, event.key);
      if (!to) return;
      event.preventDefault();
      to.focus();
    });
  }

  // A plot that is read along an axis is one stop of the Tab key as well. Arrows move by a step, the page keys by
  // ten, Home and End to the ends. size is how many steps there are across and down; show draws the
  // cursor at a step and gives the text there, and the place for it. What is returned is the step.
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, -1], ArrowDown: [1, 1], PageDown: [0, -10], PageUp: [0, 10], Home: [0, -1e9], End: [0, 1e9] };
  const readable = (svg, size, show, leave) => {
    const at = [0, 0];
    const tell = () => {
      const most = size();
      for (const way of [0, 1]) at[way] = Math.max(0, Math.min(most[way] - 1, at[way]));
      const [text, x, y] = show(...at), on = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
      byKey = true;
      say(text, on.x, on.y);
      svg.setAttribute("aria-valuemax", most[0] - 1);
      svg.setAttribute("aria-valuenow", at[0]);
      svg.setAttribute("aria-valuetext", spoken(text));
    };
    for (const [name, value] of [["tabindex", 0], ["role", "slider"], ["aria-valuemin", 0], ["aria-valuemax", size()[0] - 1], ["aria-valuenow", 0]]) svg.setAttribute(name, value);
    svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) tell(); });
    svg.addEventListener("blur", leave);
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("keydown", (event) => {
      const [way, by] = steps[event.key] ?? [];
      if (!by || size()[way] < 2 || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      at[way] += by;
      tell();
    });
    return at;
  };
  // What marks carry that lie between two places.
  const marked = (svg, left, right) => all(".event", svg).filter((e) => {
    const rect = e.querySelector("rect"), x = +rect.getAttribute("x"), wide = +rect.getAttribute("width");
    return x + 1 < right - 0.1 && x + wide > left + 0.1;
  }).map((e) => e.dataset.text);

  // An axis as written in data-x and data-y: scale, values at the ends, places of the ends.
  const axis = (text) => {
    const [kind, ...numbers] = text.split(" ");
    const [lo, hi, from, to] = numbers.map(Number);
    const value = (at) => {
      const share = (at - from) / (to - from);
      return kind === "log" ? lo * Math.pow(hi / lo, share) : lo + (hi - lo) * share;
    };
    value.place = (v) => from + (to - from) * (kind === "log" ? Math.log(v / lo) / Math.log(hi / lo) : (v - lo) / (hi - lo));
    return Object.assign(value, { lo, hi, from, to });
  };
  const duration = (ns) => {
    for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]])
      if (Math.abs(ns) >= size) return Number((ns / size).toPrecision(3)) + " " + unit;
    return Math.round(ns) + " ns";
  };
  const percentile = (nines) => {
    const percent = 100 * (1 - Math.pow(10, -nines));
    return "p" + Number(percent.toFixed(Math.max(0, Math.min(4, Math.ceil(nines) - 1))));
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
  const cursorIn = (svg) => {
    const cursor = document.createElementNS(svg.namespaceURI, "path");
    cursor.setAttribute("class", "cursor");
    svg.append(cursor);
    return cursor;
  };
  for (const svg of all("svg.percentiles")) {
    const across = axis(svg.dataset.x), up = axis(svg.dataset.y), cursor = cursorIn(svg);
    const curves = all("g[data-p]:has(.line)", svg).map((g) => ({ g, line: corners(g.querySelector(".line")) }));
    const shown = () => curves.filter((c) => c.g.style.display !== "none");
    const text = (curve, nines, y) => `${curve.g.dataset.name}\n${percentile(nines)}  ${isNaN(y) ? "–" : duration(up(y))}`;
    const leave = () => { say(""); point(null); cursor.classList.remove("on"); };
    // Each nine with what halves and quarters the rest: 90, 95, 97.5, 99 %.
    const levels = [];
    for (let nine = 0; nine <= across.hi; nine++) levels.push(...[1, 2, 4].map((part) => nine + Math.log10(part)).filter((at) => at <= across.hi));
    readable(svg, () => [levels.length, Math.max(1, shown().length)], (i, j) => {
      const curve = shown()[j], x = across.place(levels[i]);
      if (!curve) return ["", x, up.to];
      const y = heightAt(curve.line, x);
      point(curve.g.dataset.p);
      cursor.setAttribute("d", `M${x} ${up.from}V${up.to}` + (isNaN(y) ? "" : `M${x - 6} ${y}h12`));
      cursor.classList.add("on");
      return [text(curve, levels[i], y), x, isNaN(y) ? up.to : y];
    }, leave);
    svg.addEventListener("pointermove", (event) => {
      byKey = false;
      cursor.classList.remove("on");
      const at = place(svg, event);
      let best = null, height = 0, gap = 40;
      for (const c of shown()) {
        const y = heightAt(c.line, at.x);
        if (Math.abs(y - at.y) < gap) { gap = Math.abs(y - at.y); best = c; height = y; }
      }
      point(best && best.g.dataset.p);
      say(best ? text(best, across(at.x), height) : "", event.clientX, event.clientY);
    });
  }

  // The tables below plots over time: their heads, their rows, and the seconds their rows begin at.
  const numbersOf = (figure) => {
    const rows = all("tbody tr", figure).map((tr) => [...tr.cells].map((td) => td.textContent.trim()));
    return { head: all("thead th", figure).map((e) => e.textContent), rows, from: rows.map((r) => +r[0]) };
  };

  // Heat maps: the cell of the table that belongs to a time and a latency. The narrow picture may have
  // other steps and bands than the table, which is that of the wide one.
  for (const figure of all("figure.heat-map")) {
    const { head, rows, from } = numbersOf(figure), bands = head.length - 1;
    const main = figure.querySelector("svg.heat:not(.narrow)");
    if (!main || !rows.length) continue;
    const { lo, hi } = axis(main.dataset.y);
    const edge = (band) => lo * Math.pow(hi / lo, band / bands);
    const text = (i, band, notes) => [`${rows[i][0]} s`, `${head[band + 1]}  ${rows[i][band + 1] || 0}`, ...notes].join("\n");
    for (const svg of all("svg.heat", figure)) {
      const across = axis(svg.dataset.x), up = axis(svg.dataset.y), cursor = cursorIn(svg);
      const leave = () => { say(""); cursor.classList.remove("on"); };
      const at = readable(svg, () => [rows.length, bands], (i, j) => {
        const band = bands - 1 - j, left = across.place(from[i]), right = across.place(from[i + 1] ?? across.hi);
        const low = up.place(edge(band)), high = up.place(edge(band + 1));
        cursor.setAttribute("d", `M${left} ${low}V${high}H${right}V${low}z`);
        cursor.classList.add("on");
        return [text(i, band, marked(svg, left, right)), right, low];
      }, leave);
      at[1] = bands - rows[0].slice(1).reduce((best, n, k, all) => (+n > +all[best] ? k : best), 0) - 1; // the fullest band
      svg.addEventListener("pointermove", (event) => {
        byKey = false;
        cursor.classList.remove("on");
        const on = place(svg, event), i = from.findLastIndex((s) => s <= across(on.x));
        const band = Math.floor(Math.log(up(on.y) / lo) / Math.log(hi / lo) * bands);
        const mark = event.target.closest(".event"), notes = mark ? [mark.dataset.text] : [];
        say(i >= 0 && band >= 0 && band < bands ? text(i, band, notes) : notes.join(), event.clientX, event.clientY);
      });
    }
  }

  // Timelines: the row of the table that belongs to a time.
  for (const figure of all("figure.over-time")) {
    const { head, rows, from } = numbersOf(figure);
    if (!rows.length) continue;
    for (const svg of all("svg.timeline", figure)) {
      const across = axis(svg.dataset.x), cursor = svg.querySelector(".cursor");
      const text = (i, x, notes) => {
        cursor.setAttribute("x1", x);
        cursor.setAttribute("x2", x);
        cursor.classList.toggle("on", i >= 0);
        const row = i < 0 ? [] : rows[i].map((text, k) => (k ? `${head[k]}  ${text}` : `${text} s`));
        return [...row, ...notes].join("\n");
      };
      const at = readable(svg, () => [rows.length, 1], (i) => {
        const left = across.place(from[i]), right = across.place(from[i + 1] ?? across.hi), x = (left + right) / 2;
        return [text(i, x, marked(svg, left, right)), x, +cursor.getAttribute("y1")];
      }, () => { say(""); cursor.classList.remove("on"); });
      svg.addEventListener("pointermove", (event) => {
        byKey = false;
        const on = place(svg, event), i = from.findLastIndex((s) => s <= across(on.x)), mark = event.target.closest(".event");
        if (i >= 0) at[0] = i; // the keys go on from here
        say(text(i, on.x, mark ? [mark.dataset.text] : []), event.clientX, event.clientY);
      });
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
