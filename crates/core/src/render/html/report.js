// Brings the figures to life: values under the pointer and the arrow keys, and zooming in time.
// Without it every figure is whole, and its numbers are in its text and in the tables.
"use strict";
(() => {
  const WIDTH = 760;
  const SVG = "http://www.w3.org/2000/svg";

  const svg = (parent, name, attributes) => {
    const element = parent.appendChild(document.createElementNS(SVG, name));
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const html = (parent, name, properties) =>
    parent.appendChild(Object.assign(document.createElement(name), properties));
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  // Seconds as they are written on an axis whose marks are `step` apart.
  const seconds = (value, step) => {
    const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    if (step >= 0.1) return `${value.toFixed(places)} s`;
    return `${(value * 1000).toFixed(Math.max(0, places - 3))} ms`;
  };
  const roundUp = (value) => {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].find((step) => value <= step * power * (1 + 1e-9)) * power;
  };

  // Said once for each kind of figure.
  const hints = {
    dots: "Point at a dot for its values.",
    curves: "Point at a place for its values.",
    seconds: "Point at a place for its values; drag to zoom in, double-click for the whole.",
  };

  // A figure's plots with what can be read in them: one text for each place of each curve or dot.
  class Live {
    constructor(figure) {
      this.figure = figure;
      this.kind = figure.dataset.live;
      this.length = Number(figure.dataset.seconds);
      this.view = [0, 1];
      this.index = 0;
      this.plot = 0;
      this.drawing = figure.querySelector(".drawing");
      const plots = [...figure.querySelectorAll("svg.plot")];
      this.plots = plots.map((plot) => ({
        svg: plot,
        title: plot.closest(".panel")?.dataset.title,
        height: plot.viewBox.baseVal.height,
        curves: [...plot.querySelectorAll("[data-shown]")].map((path) => ({ path })),
      }));
      for (const plot of this.plots) {
        const area = { class: "area", width: WIDTH, height: plot.height };
        plot.svg.prepend(svg(plot.svg, "rect", area));
      }
      this.bar = html(figure, "div", { className: "bar" });
      this.readout = html(this.bar, "output", { textContent: hints[this.kind] });
      hints[this.kind] = this.kind === "seconds" ? "drag to zoom" : "";
      this.listen();
    }

    listen() {
      const { drawing } = this;
      drawing.tabIndex = 0;
      drawing.setAttribute("role", "slider");
      const title = this.figure.querySelector("figcaption strong").textContent;
      const keys = this.kind === "seconds" ? "arrow keys; plus and minus zoom" : "arrow keys";
      drawing.setAttribute("aria-label", `${title}: values, by the ${keys}`);
      drawing.setAttribute("aria-valuenow", 0);
      drawing.addEventListener("pointermove", (event) => this.point(event));
      drawing.addEventListener("pointerdown", (event) => this.grab(event));
      drawing.addEventListener("keydown", (event) => this.key(event));
      if (this.kind !== "seconds") return;
      drawing.addEventListener("dblclick", () => this.zoom(0, 1));
      const button = (textContent, title, act) => {
        html(this.bar, "button", { textContent, title, type: "button" })
          .addEventListener("click", act);
      };
      button("−", "Zoom out", () => this.magnify(2));
      button("+", "Zoom in", () => this.magnify(0.5));
      button("whole", "Show the whole", () => this.zoom(0, 1));
    }

    // The texts of a plot's curve; of dots also where they are.
    read(curve) {
      curve.texts ??= curve.path.dataset.shown.split("|");
      if (this.kind === "dots") {
        curve.dots ??= [...curve.path.getAttribute("d").matchAll(/M([\d.]+) ([\d.]+)/g)]
          .map(([, x, y]) => [Number(x), Number(y)]);
      }
      return curve;
    }

    count(plot) {
      return this.read(this.plots[plot].curves[0]).texts.length;
    }

    // Where in the plots a place is, from 0 to 1.
    share(index, count) {
      return this.kind === "seconds" ? (index + 0.5) / count : index / Math.max(count - 1, 1);
    }

    point(event) {
      const at = this.locate(event);
      this.plot = at.plot;
      if (this.kind === "dots") {
        const { dots } = this.read(this.plots[at.plot].curves[0]);
        const far = ([x, y]) => Math.hypot((x / WIDTH) * at.width - at.x, y - at.y);
        let nearest = 0;
        dots.forEach((dot, index) => {
          if (far(dot) < far(dots[nearest])) nearest = index;
        });
        this.show(nearest);
      } else {
        const count = this.count(at.plot);
        const share = this.view[0] + (at.x / at.width) * (this.view[1] - this.view[0]);
        const place = this.kind === "seconds" ? Math.floor(share * count)
          : Math.round(share * (count - 1));
        this.show(place);
      }
      if (this.grabbed !== undefined) this.select(at.x);
    }

    // The nearest plot to the pointer: which, where in it, and how wide it is.
    locate(event) {
      const frame = this.drawing.getBoundingClientRect();
      const y = event.clientY - frame.top;
      const tops = this.plots.map(({ svg: plot }) => plot.y.baseVal.value);
      const away = this.plots.map(({ height }, plot) =>
        Math.max(tops[plot] - y, y - tops[plot] - height, 0));
      const plot = away.indexOf(Math.min(...away));
      const x = clamp(event.clientX - frame.left, 0, frame.width);
      return { plot, x, y: y - tops[plot], width: frame.width };
    }

    // Shows what is at a place: in words below, and by a line through all plots.
    show(index) {
      const count = this.count(this.plot);
      this.index = clamp(index, 0, count - 1);
      const { curves, title } = this.plots[this.plot];
      const parts = curves.map((curve) => {
        const text = this.read(curve).texts[this.index];
        return text ? [curve.path.dataset.name, text] : null;
      }).filter(Boolean);
      const where = this.kind === "seconds"
        ? [`${seconds(this.share(this.index, count) * this.length, this.length / count)}`] : [];
      if (title) where.push(title);
      this.readout.textContent = "";
      if (where.length) html(this.readout, "span", { textContent: where.join(", ") });
      for (const [name, text] of parts) {
        const item = html(this.readout, "span", {});
        html(item, "b", { textContent: name });
        item.append(` ${text}`);
      }
      const said = [...where, ...parts.map((part) => part.join(" "))].join("; ");
      this.drawing.setAttribute("aria-valuemax", count - 1);
      this.drawing.setAttribute("aria-valuenow", this.index);
      this.drawing.setAttribute("aria-valuetext", said);
      this.mark(count);
    }

    mark(count) {
      this.plots.forEach((plot, number) => {
        plot.cursor ??= svg(plot.svg, "path", { class: "cursor" });
        if (this.kind !== "dots") {
          const x = this.share(this.index, count) * WIDTH;
          plot.cursor.setAttribute("d", `M${x} 0V${plot.height}`);
        } else if (number === this.plot) {
          const [x, y] = this.read(plot.curves[0]).dots[this.index];
          plot.cursor.setAttribute("d", `M${x} ${y}h.01`);
        } else {
          plot.cursor.setAttribute("d", "");
        }
      });
    }

    grab(event) {
      if (this.kind !== "seconds" || event.button !== 0) return;
      if (!event.target.closest("svg.plot")) return;
      event.preventDefault();
      this.drawing.focus({ preventScroll: true });
      this.drawing.setPointerCapture(event.pointerId);
      this.grabbed = this.locate(event).x;
      this.box = html(this.drawing, "div", { className: "selection" });
      const end = (last) => {
        this.box.remove();
        const { x, width } = this.locate(last);
        const [from, to] = [Math.min(this.grabbed, x), Math.max(this.grabbed, x)];
        this.grabbed = undefined;
        const [low, high] = this.view;
        const at = (place) => low + (place / width) * (high - low);
        if (last.type === "pointerup" && to - from > 8) this.zoom(at(from), at(to));
      };
      const stop = new AbortController();
      for (const type of ["pointerup", "pointercancel"]) {
        this.drawing.addEventListener(type, (last) => {
          stop.abort();
          end(last);
        }, { signal: stop.signal });
      }
    }

    select(x) {
      this.box.style.left = `${Math.min(x, this.grabbed)}px`;
      this.box.style.width = `${Math.abs(x - this.grabbed)}px`;
    }

    // Makes what is seen so many times as long, around the marked place.
    magnify(factor) {
      const [low, high] = this.view;
      const count = this.count(this.plot);
      const marked = this.share(this.index, count);
      const middle = marked > low && marked < high ? marked : (low + high) / 2;
      const half = ((high - low) * factor) / 2;
      this.zoom(middle - half, middle + half);
    }

    zoom(from, to) {
      const count = this.count(0);
      const length = clamp(to - from, Math.min(1, 4 / count), 1);
      const low = clamp(from, 0, 1 - length);
      this.view = [low, low + length];
      for (const { svg: plot, height } of this.plots) {
        plot.setAttribute("viewBox", `${low * WIDTH} 0 ${length * WIDTH} ${height}`);
      }
      this.axis();
      this.figure.classList.toggle("zoomed", length < 1);
    }

    // Draws the marks of the time that is seen.
    axis() {
      const marks = this.figure.querySelector("g.marks");
      this.marks ??= marks.cloneNode(true);
      if (this.view[1] - this.view[0] === 1) {
        marks.replaceChildren(...this.marks.cloneNode(true).childNodes);
        return;
      }
      const { y1, y2 } = this.marks.querySelector("line");
      const [top, bottom] = [y1.baseVal.value, y2.baseVal.value];
      const [low, high] = this.view.map((share) => share * this.length);
      const step = roundUp((high - low) / 5);
      marks.textContent = "";
      for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high; tick += step) {
        const share = (tick - low) / (high - low);
        const x = `${share * 100}%`;
        svg(marks, "line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom });
        const anchor = share < 0.1 ? "start" : share > 0.9 ? "end" : "middle";
        svg(marks, "text", { class: "mark", x, y: bottom + 15, "text-anchor": anchor })
          .textContent = seconds(tick, step);
      }
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const far = event.shiftKey ? 10 : 1;
      const move = (plots) => {
        this.plot = clamp(this.plot + plots, 0, this.plots.length - 1);
        this.show(this.index);
      };
      const acts = {
        ArrowLeft: () => this.show(this.index - far),
        ArrowRight: () => this.show(this.index + far),
        ArrowUp: () => move(-1),
        ArrowDown: () => move(1),
        Home: () => this.show(0),
        End: () => this.show(Infinity),
      };
      if (this.kind === "seconds") {
        acts["+"] = acts["="] = () => this.magnify(0.5);
        acts["-"] = () => this.magnify(2);
        acts["0"] = acts.Escape = () => this.zoom(0, 1);
      }
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
      this.follow();
    }

    // Keeps the marked place in sight.
    follow() {
      if (this.kind !== "seconds") return;
      const [low, high] = this.view;
      const marked = this.share(this.index, this.count(this.plot));
      if (marked < low || marked > high) {
        this.zoom(marked - (high - low) / 2, marked + (high - low) / 2);
      }
    }
  }

  for (const figure of document.querySelectorAll("figure[data-live]")) new Live(figure);

  const keep = document.querySelector("button[data-file]");
  if (keep) keep.hidden = false;
  keep?.addEventListener("click", () => {
    const text = document.querySelector("template").content.textContent;
    const href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    html(document.body, "a", { href, download: keep.dataset.file }).click();
    document.body.lastChild.remove();
    URL.revokeObjectURL(href);
  });
})();
